// Adding somebody to a campaign.
import { useState } from "preact/hooks";
import { useAssistants, type Campaign } from "#ui/dashboard/data/lists.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form, TextArea, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { Dialog, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { CampaignField, WithCampaigns } from "./choose-campaign.tsx";
import { Variables, variablesOf, type Pair } from "./variables.tsx";
import "./leads.css";

interface Props {
  /** The campaign that is chosen first; empty: any. */
  campaignId: string;
  onDone(): void;
  onClose(): void;
}

export function NewLead(props: Props) {
  return (
    <Dialog title="New lead" onClose={props.onClose}>
      <WithCampaigns>{(campaigns) => <LeadForm {...props} campaigns={campaigns} />}</WithCampaigns>
    </Dialog>
  );
}

/**
 * The server names the invalid one of the secondary numbers by its index: this shows the number.
 */
function contactsError(errors: Record<string, string>, numbers: string[]): string | undefined {
  const [field, text] = Object.entries(errors)
    .find(([name]) => name.startsWith("secondary_contacts")) ?? [];
  const number = numbers[Number(field?.split(".")[1])];
  return text && (number === undefined ? text : `${number}: ${text}`);
}

/** The variables of the campaign's assistant. */
function useNames(campaigns: Campaign[], chosen: string): string {
  const assistants = useAssistants().value ?? [];
  const campaign = campaigns.find(({ id }) => String(id) === chosen);
  const assistant = assistants.find(({ id }) => id === campaign?.assistant_id);
  return Object.keys(assistant?.variables ?? {}).join(", ");
}

function LeadForm({ campaigns, campaignId, onDone, onClose }: Props & { campaigns: Campaign[] }) {
  const api = useApi();
  const toasts = useToasts();
  const [campaign, setCampaign] = useState(campaignId || String(campaigns.at(-1)?.id ?? ""));
  const [number, setNumber] = useState("");
  const [others, setOthers] = useState("");
  const [variables, setVariables] = useState<Pair[]>([]);
  const [isTwice, setTwice] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const names = useNames(campaigns, campaign);
  const errors = fieldErrors(error);
  const numbers = others.split("\n").map((line) => line.trim()).filter(Boolean);
  const save = async (): Promise<void> => {
    const { message } = await unwrap(api.POST("/user/lead", {
      body: {
        campaign_id: Number(campaign), phone_number: number.trim(),
        variables: variablesOf(variables), allow_dupplicate: isTwice,
        secondary_contacts: numbers.map((phone) => ({ phone_number: phone })),
      },
    }));
    toasts.notify(message);
    onDone();
    onClose();
  };
  return (
    <Form submit="Add" error={error} onError={setError} onCancel={onClose} onSubmit={save}>
      <CampaignField
        campaigns={campaigns} value={campaign} onInput={setCampaign} error={errors.campaign_id}
      />
      <TextField
        label="Phone number" type="tel" required value={number} onInput={setNumber}
        placeholder="+15550100123" hint="With country code" error={errors.phone_number}
        maxLength={64} autoComplete="off"
      />
      <TextArea
        label="Other numbers of theirs" rows={2} value={others} onInput={setOthers}
        hint="One per line, tried in this order when the first is not reached"
        error={contactsError(errors, numbers)}
      />
      <Variables pairs={variables} onInput={setVariables} error={errors.variables} />
      {names !== "" && <small>The campaign’s assistant knows: {names}</small>}
      <Toggle
        label="Add even if the number is already in the campaign" value={isTwice} onInput={setTwice}
      />
    </Form>
  );
}
