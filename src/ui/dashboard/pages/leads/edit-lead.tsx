// Editing a lead: only the fields that people changed are kept, all others follow the server.
import { useState } from "preact/hooks";
import { meanwhile, takenFault } from "#ui/dashboard/data/meanwhile.ts";
import { useCampaigns } from "#ui/dashboard/data/lists.ts";
import { fieldErrors, messageOf, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";
import { SelectField, sends, TextField, useWork } from "#ui/dashboard/kit/controls.tsx";
import { useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import { LeaveGuard, UnsavedBar } from "#ui/dashboard/kit/unsaved.tsx";
import type { Lead } from "./live-leads.ts";
import { pairsOf, Variables, variablesOf, type Pair } from "./variables.tsx";

interface Draft {
  number?: string;
  campaign?: string;
  status?: string;
  /** Values by name, of those the lead has. */
  values?: Record<string, string>;
  added?: Pair[];
  /** The lead when editing began. */
  before?: Lead;
}

type Settable = "created" | "completed" | "reached-max-retries";

const STATUSES = [
  { value: "", label: "Leave as it is" },
  { value: "created", label: "Back in the queue" },
  { value: "completed", label: "Completed" },
  { value: "reached-max-retries", label: "Reached max retries" },
];

/** The part of the draft that differs from the lead. */
function changesOf(draft: Draft, lead: Lead) {
  const { number, campaign, status, values = {}, added = [] } = draft;
  const variables = Object.fromEntries(
    Object.entries({ ...values, ...variablesOf(added) })
      .filter(([name, value]) => lead.variables[name] !== value));
  return {
    ...(number !== undefined && number.trim() !== lead.phone_number
      ? { phone_number: number.trim() }
      : {}),
    ...(campaign !== undefined && Number(campaign) !== lead.campaign_id
      ? { campaign_id: Number(campaign) }
      : {}),
    ...(status ? { status: status as Settable } : {}),
    ...(Object.keys(variables).length > 0 ? { variables } : {}),
  };
}

/** The editable fields, each variable on its own. */
const fieldsOf = ({ phone_number, campaign_id, variables }: Lead): Record<string, unknown> => ({
  phone_number, campaign_id,
  ...Object.fromEntries(Object.entries(variables).map(([name, value]) => [`variables ${name}`, value])),
});

/** The server's names of the fields that somebody else has meanwhile changed to another value. */
function takenOf(changes: ReturnType<typeof changesOf>, before: Lead, theirs: Lead): string[] {
  const variables = { ...before.variables, ...changes.variables };
  const mine = fieldsOf({ ...before, ...changes, variables } as Lead);
  const { taken } = meanwhile(mine, fieldsOf(before), fieldsOf(theirs));
  return taken.map((name) => name.split(" ")[0] ?? name);
}

/**
 * The changes that undo these; null: they cannot be undone. Variables that the lead did not have
 * cannot be removed, and it cannot return to its place in the queue.
 */
function inverseOf(changes: ReturnType<typeof changesOf>, lead: Lead) {
  const names = Object.keys(changes.variables ?? {});
  const isKnown = names.every((name) => Object.hasOwn(lead.variables, name));
  const isFresh = lead.status === "created" && lead.call_tries === 0;
  if (!isKnown || (changes.status && !isFresh)) return null;
  return {
    ...changes.phone_number === undefined ? {} : { phone_number: lead.phone_number },
    ...changes.campaign_id === undefined ? {} : { campaign_id: lead.campaign_id },
    ...changes.status ? { status: "created" as const } : {},
    ...names.length > 0
      ? { variables: Object.fromEntries(names.map((name) => [name, lead.variables[name] ?? ""])) }
      : {},
  };
}

interface Kept {
  onSaved(lead: Lead): void;
  /**
   * Somebody else has changed the same fields: nothing was saved, and `lead` is the current one.
   */
  onTaken(lead: Lead): void;
}

function useSaving(lead: Lead, { onSaved, onTaken }: Kept) {
  const api = useApi();
  const toasts = useToasts();
  const patch = async (body: ReturnType<typeof changesOf>): Promise<string> => {
    const { message, data } = await unwrap(api.PATCH("/user/leads/{id}", {
      params: { path: { id: lead.id } }, body,
    }));
    onSaved(data);
    return message;
  };
  return async (changes: ReturnType<typeof changesOf>, before: Lead): Promise<void> => {
    const theirs = await unwrap(api.GET("/user/leads/{id}", { params: { path: { id: lead.id } } }));
    const taken = takenOf(changes, before, theirs);
    if (taken.length > 0) {
      onTaken(theirs);
      throw takenFault(taken);
    }
    const back = inverseOf(changes, lead);
    const message = await patch(changes);
    toasts.notify(message, back ? () => patch(back) : undefined);
  };
}

export function EditLead({ lead, onSaved }: { lead: Lead; onSaved(lead: Lead): void }) {
  const campaigns = useCampaigns().value ?? [{ id: lead.campaign_id, name: lead.campaign.name }];
  const [draft, setDraft] = useState<Draft>({});
  const [error, setError] = useState<unknown>(null);
  const work = useWork(setError);
  const change = (part: Draft): void =>
    setDraft((now) => ({ before: lead, ...now, ...part }));
  const changes = changesOf(draft, lead);
  const saveLead = useSaving(lead, {
    onSaved,
    onTaken: (theirs) => (onSaved(theirs), change({ before: theirs })),
  });
  const errors = fieldErrors(error);
  const save = async (): Promise<void> => {
    await saveLead(changes, draft.before ?? lead);
    // What was typed meanwhile stays unsaved.
    setDraft((now) => (now === draft ? {} : now));
    setError(null);
  };
  const discard = (): void => {
    setDraft({});
    setError(null);
  };
  const isDirty = Object.keys(changes).length > 0;
  return (
    <Card title="Change it" class="stack">
      <form
        onSubmit={sends(() => {
          if (isDirty) work.run(save);
        })}
      >
        <div class="form-row">
          <TextField
            label="Phone number" type="tel" required value={draft.number ?? lead.phone_number}
            onInput={(number) => change({ number })} autoComplete="off" maxLength={64}
            error={errors.phone_number}
          />
          <SelectField
            label="Campaign" value={draft.campaign ?? String(lead.campaign_id)}
            onInput={(campaign) => change({ campaign })} error={errors.campaign_id}
            options={namedOptions(campaigns)}
          />
        </div>
        <SelectField
          label="Set the status" value={draft.status ?? ""} options={STATUSES}
          onInput={(status) => change({ status })} error={errors.status}
          hint="Back in the queue: it is called again, with all its attempts"
        />
        <Variables
          pairs={[...pairsOf({ ...lead.variables, ...draft.values }), ...draft.added ?? []]}
          onInput={(pairs) => change({
            // Values that nobody has edited keep following the server.
            values: variablesOf(pairs.filter(({ isKept, name, value }) =>
              isKept && value !== lead.variables[name])),
            added: pairs.filter(({ isKept }) => !isKept),
          })}
          error={errors.variables}
        />
      </form>
      {isDirty && (
        <UnsavedBar
          needs="answer"
          isBusy={work.isBusy} note={error ? messageOf(error) : null}
          onSave={() => work.run(save)} onDiscard={discard}
        />
      )}
      <LeaveGuard isDirty={isDirty} home={`#/leads/${lead.id}`} />
    </Card>
  );
}
