// Creating and editing a campaign: the form as a page of its own.
import { useState } from "preact/hooks";
import { useAssistants, type Assistant, type Campaign } from "#ui/dashboard/data/lists.ts";
import { useEdited } from "#ui/dashboard/data/meanwhile.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form } from "#ui/dashboard/kit/controls.tsx";
import { useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Card, Empty, Loaded, Page } from "#ui/dashboard/kit/layout.tsx";
import { LeaveGuard } from "#ui/dashboard/kit/unsaved.tsx";
import { CampaignFields } from "./campaign-form.tsx";
import { bodyOf, changesOf, fieldsOf, newFields } from "./fields.ts";

export function NewCampaign() {
  const assistants = useAssistants();
  return (
    <Page title="New campaign" back={{ href: "#/campaigns", label: "Campaigns" }}>
      <Card class="campaigns-form">
        <Loaded data={assistants}>
          {(all) => (
            <Editor
              campaign={null} assistants={outbound(all, null)} onSaved={() => undefined}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

export function EditCampaign({ campaign, onSaved }: {
  campaign: Campaign; onSaved(campaign: Campaign): void;
}) {
  const assistants = useAssistants();
  return (
    <Page
      title={`Edit ${campaign.name}`}
      back={{ href: `#/campaigns/${campaign.id}`, label: campaign.name }}
    >
      <Card class="campaigns-form">
        <Loaded data={assistants}>
          {(all) => (
            <Editor
              campaign={campaign} assistants={outbound(all, campaign.assistant_id)}
              onSaved={onSaved}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

/** The current assistant is offered even if it is no longer outbound. */
const outbound = (assistants: Assistant[], chosen: number | null): Assistant[] =>
  assistants.filter(({ id, type }) => type === "outbound" || id === chosen);

function Editor({ campaign, assistants, onSaved }: {
  campaign: Campaign | null; assistants: Assistant[]; onSaved(campaign: Campaign): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const edited = useEdited(() => campaign ? fieldsOf(campaign) : newFields(
    assistants.find(({ status }) => status === "active") ?? assistants[0]));
  const { before, fields } = edited;
  const [error, setError] = useState<unknown>(null);
  const [isDone, setDone] = useState(false);
  if (assistants.length === 0) {
    return (
      <Empty icon="assistants" title="No outbound assistant yet">
        <a href="#/assistants">Create one</a> that calls people, then come back.
      </Empty>
    );
  }
  const changes = changesOf(fields, before);
  const change = async (id: number) => {
    const params = { path: { id } };
    const theirs = fieldsOf(await unwrap(api.GET("/user/campaigns/{id}", { params })));
    const body = changesOf(edited.onto(theirs), theirs);
    return unwrap(api.PATCH("/user/campaigns/{id}", { params, body }));
  };
  const save = async (): Promise<void> => {
    const { message, data } = campaign
      ? await change(campaign.id)
      : await unwrap(api.POST("/user/campaigns", { body: bodyOf(fields) }));
    toasts.notify(message);
    onSaved(data);
    // Rendered before the address changes, so that the leave guard finds nothing unsaved.
    setDone(true);
    setTimeout(() => void (location.hash = `#/campaigns/${data.id}`));
  };
  const home = campaign ? `#/campaigns/${campaign.id}/edit` : "#/campaigns/new";
  return (
    <Form
      submit={campaign ? "Save" : "Create"} needs="build" error={error} onError={setError}
      onSubmit={save}
      onCancel={() => void (location.hash = campaign ? `#/campaigns/${campaign.id}` : "#/campaigns")}
    >
      <CampaignFields
        fields={fields} errors={fieldErrors(error)} assistants={assistants}
        set={edited.set}
      />
      <LeaveGuard isDirty={!isDone && Object.keys(changes).length > 0} home={home} />
    </Form>
  );
}
