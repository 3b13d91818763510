// The gallery of templates, and what was made from them: an assistant with knowledge, tool and test
// call, to be removed together.
import { useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button, Form, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, Dialog, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { when } from "#ui/dashboard/kit/format.ts";
import { Card, Loaded } from "#ui/dashboard/kit/layout.tsx";
import { said } from "#ui/dashboard/kit/said.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

type Body<Path extends "/user/templates" | "/user/template-sets"> =
  paths[Path]["get"]["responses"][200]["content"]["application/json"]["data"][number];
type Template = Body<"/user/templates">;
type TemplateSet = Body<"/user/template-sets">;

export function TemplateGallery({ onChange, onClose }: { onChange(): void; onClose(): void }) {
  const api = useApi();
  const templates = useData("templates", () => unwrap(api.GET("/user/templates")));
  const [chosen, setChosen] = useState<Template | null>(null);
  return (
    <Dialog title={chosen ? NAMES[chosen.name] : "Start from a template"} isWide onClose={onClose}>
      {chosen ? <Fill template={chosen} onBack={() => setChosen(null)} onClose={onClose} /> : (
        <Loaded data={templates}>
          {({ data }) => (
            <ul class="assistants-gallery" aria-label="Templates">
              {data.map((template) => (
                <li key={template.name}>
                  <button type="button" onClick={() => setChosen(template)}>
                    <strong>{NAMES[template.name]}</strong>
                    <span>{said(template.description)}</span>
                    <small>{partsOf(template)}</small>
                  </button>
                </li>
              ))}
            </ul>
          )}
        </Loaded>
      )}
      {!chosen && <TemplateSets onChange={onChange} />}
    </Dialog>
  );
}

const partsOf = ({ knowledge, tool }: Template): string => [
  "Assistant", ...(knowledge ? [t("knowledge")] : []), ...(tool ? [t("tool")] : []), t("test call"),
].join(", ");

function Fill({ template, onBack, onClose }: {
  template: Template; onBack(): void; onClose(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const [fields, setFields] = useState({ company: "", website: "", endpoint: "", withCall: true });
  const [error, setError] = useState<unknown>(null);
  const wrong = fieldErrors(error);
  const title = NAMES[template.name];
  const set = (part: Partial<typeof fields>): void => setFields({ ...fields, ...part });
  const submit = async (): Promise<void> => {
    const { company, website, endpoint, withCall } = fields;
    const { data } = await unwrap(api.POST("/user/template-sets", {
      body: {
        template: template.name, test_call: withCall,
        timezone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC",
        ...company.trim() ? { company } : {},
        ...website.trim() ? { website } : {},
        ...endpoint.trim() ? { endpoint } : {},
      },
    }));
    toasts.notify(data.call_problem === null
      ? t(`${title}: all of it is there.`)
      : `It was created, but without a test call: ${said(data.call_problem)}`);
    onClose();
    location.hash = `#/assistants/${data.assistant_id}/test`;
  };
  return (
    <Form
      submit="Create everything" needs="build" error={error} onError={setError}
      onSubmit={submit} onCancel={onBack}
    >
      <p>{said(template.description)}</p>
      <TextField
        label="Company" value={fields.company} error={wrong.company} placeholder="Harbour Bikes"
        hint="Who it speaks for." maxLength={100} onInput={(company) => set({ company })}
      />
      {template.website && (
        <TextField
          label="Website" type="url" value={fields.website} error={wrong.website} required
          placeholder="https://www.example.com" hint="Its pages are read and used for answers."
          onInput={(website) => set({ website })}
        />
      )}
      {template.tool && (
        <TextField
          label="Address of your shop’s system" type="url" value={fields.endpoint}
          error={wrong.endpoint} placeholder="https://shop.example.com/orders/status"
          hint="The tool asks it with ?order_number=…; leave it empty to fill it in later."
          onInput={(endpoint) => set({ endpoint })}
        />
      )}
      <Toggle
        label="Make a test call right away" value={fields.withCall}
        hint={`The server’s own caller says: “${template.lines.join("” “")}”`}
        onInput={(withCall) => set({ withCall })}
      />
    </Form>
  );
}

/** What was created from templates and still exists; renders nothing where there is none. */
function TemplateSets({ onChange }: { onChange(): void }) {
  const api = useApi();
  const sets = useData("template sets", () => unwrap(api.GET("/user/template-sets")));
  const [removed, setRemoved] = useState<TemplateSet | null>(null);
  const rows = sets.value?.data ?? [];
  if (rows.length === 0) return null;
  return (
    <Card title="Created from templates">
      <ul class="assistants-sets">
        {rows.map((set) => (
          <li key={set.id}>
            <a href={`#/assistants/${set.assistant_id}`}>{NAMES[set.template]}</a>
            {set.knowledgebase_id !== null && <a href={`#/knowledgebases/${set.knowledgebase_id}`}>Knowledge</a>}
            {set.tool_id !== null && <a href={`#/tools/${set.tool_id}`}>Tool</a>}
            {set.call_id !== null && <a href={`#/calls/${set.call_id}`}>Test call</a>}
            <time>{when(set.created_at)}</time>
            <Button needs="build" onClick={() => setRemoved(set)}>Remove everything</Button>
          </li>
        ))}
      </ul>
      {removed && (
        <Confirm
          title="Remove everything that was created together?" action="Remove everything"
          onClose={() => setRemoved(null)}
          onConfirm={async () => {
            await unwrap(api.DELETE("/user/template-sets/{id}", {
              params: { path: { id: removed.id } },
            }));
            sets.reload();
            onChange();
          }}
        >
          The assistant, its knowledge, its tool and its test call are deleted and cannot be
          recovered.
        </Confirm>
      )}
    </Card>
  );
}

const NAMES: Record<Template["name"], string> = {
  support: "Customer support", appointments: "Appointment desk",
  lead_qualification: "Lead qualification", order_status: "Order status",
  survey: "Survey caller", website_faq: "Questions from a website",
};
