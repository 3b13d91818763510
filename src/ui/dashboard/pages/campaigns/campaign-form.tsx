// The form of a new or existing campaign.
import { WEEKDAYS } from "#core/days.ts";
import type { Assistant } from "#ui/dashboard/data/lists.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { NumberField, SelectField, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { words } from "#ui/dashboard/kit/format.ts";
import { zoneOptions } from "#ui/dashboard/kit/zone.ts";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";
import { t } from "#ui/dashboard/kit/texts.ts";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";
import type { Fields } from "./fields.ts";
import "./campaigns.css";

interface Props {
  fields: Fields;
  errors: Record<string, string>;
  /** Outbound assistants. */
  assistants: Assistant[];
  set(part: Partial<Fields>): void;
}

export function CampaignFields(props: Props) {
  return (
    <div class="stack">
      <Who {...props} />
      <When {...props} />
      <Retries {...props} />
      <From {...props} />
    </div>
  );
}

/** The server names a list's invalid member by its index: `allowed_days.0`. */
const errorOf = (errors: Record<string, string>, field: string): string | undefined =>
  errors[field] ?? Object.entries(errors).find(([name]) => name.startsWith(`${field}.`))?.[1];

function Who({ fields, errors, assistants, set }: Props) {
  const chosen = assistants.find(({ id }) => id === fields.assistant_id);
  return (
    <div class="form-row">
      <TextField
        label="Name" required maxLength={255} value={fields.name} autoComplete="off"
        onInput={(name) => set({ name })} error={errors.name}
      />
      <SelectField
        label="Assistant" value={String(fields.assistant_id ?? "")} error={errors.assistant_id}
        hint={chosen?.status === "inactive" ? "It is inactive: activate it before you start" : undefined}
        options={namedOptions(assistants)}
        onInput={(id) => set({
          assistant_id: Number(id), goal_completion_variable: null, retry_on_goal_incomplete: false,
        })}
      />
      <NumberField
        label="Calls at a time" min={1} max={10} value={fields.max_calls_in_parallel}
        onInput={(value) => set({ max_calls_in_parallel: value })}
        error={errors.max_calls_in_parallel}
      />
    </div>
  );
}

function When({ fields, errors, set }: Props) {
  const { allowed_days: days, timezone } = fields;
  const daysError = errorOf(errors, "allowed_days");
  return (
    <fieldset>
      <legend>When it may call</legend>
      <div class="form-row">
        <TextField
          label="From" type="time" required value={fields.allowed_hours_start_time}
          onInput={(time) => set({ allowed_hours_start_time: time })}
          error={errors.allowed_hours_start_time}
        />
        <TextField
          label="To" type="time" required value={fields.allowed_hours_end_time}
          onInput={(time) => set({ allowed_hours_end_time: time })}
          error={errors.allowed_hours_end_time}
        />
        <SelectField
          label="Time zone" value={timezone} error={errors.timezone}
          onInput={(zone) => set({ timezone: zone })}
          options={zoneOptions(timezone)}
        />
      </div>
      <div class="campaigns-checks" role="group" aria-label="Days">
        {WEEKDAYS.map((day) => (
          <label key={day} class="campaigns-check">
            <input
              type="checkbox" checked={days.includes(day)}
              onChange={({ currentTarget: { checked } }) => set({
                allowed_days: WEEKDAYS.filter((one) => one === day ? checked : days.includes(one)),
              })}
            />
            {words(day)}
          </label>
        ))}
      </div>
      {daysError && <p class="form-error">{daysError}</p>}
    </fieldset>
  );
}

function Retries({ fields, errors, assistants, set }: Props) {
  const chosen = assistants.find(({ id }) => id === fields.assistant_id);
  const goals = (chosen?.post_call_schema ?? []).filter(({ type }) => type === "bool");
  const goal = fields.goal_completion_variable;
  const names = [...new Set([...goals.map(({ name }) => name), ...(goal === null ? [] : [goal])])];
  return (
    <fieldset>
      <legend>When somebody is not reached</legend>
      <div class="form-row">
        <NumberField
          label="Retries at most" min={1} max={5} value={fields.max_retries}
          onInput={(value) => set({ max_retries: value })} error={errors.max_retries}
        />
        <NumberField
          label="Minutes between attempts" min={10} max={4320} value={fields.retry_interval}
          onInput={(value) => set({ retry_interval: value })} error={errors.retry_interval}
        />
        <SelectField
          label="Call goal" value={goal ?? ""} error={errors.goal_completion_variable}
          hint="A yes-or-no field of the assistant’s evaluation"
          options={[{ value: "", label: "None" }, ...names.map((name) => ({ value: name, label: name }))]}
          onInput={(name) => set({
            goal_completion_variable: name || null,
            ...(name ? {} : { retry_on_goal_incomplete: false }),
          })}
        />
      </div>
      <Toggle
        label="Try again after an answering machine" value={fields.retry_on_voicemail}
        onInput={(value) => set({ retry_on_voicemail: value })} error={errors.retry_on_voicemail}
      />
      <Toggle
        label="Try again until the goal is reached" value={fields.retry_on_goal_incomplete}
        disabled={goal === null} error={errors.retry_on_goal_incomplete}
        onInput={(value) => set({ retry_on_goal_incomplete: value })}
      />
      <Toggle
        label="Complete the campaign when all leads are done" value={fields.mark_complete_when_no_leads}
        hint="Otherwise it waits for new ones" error={errors.mark_complete_when_no_leads}
        onInput={(value) => set({ mark_complete_when_no_leads: value })}
      />
    </fieldset>
  );
}

function From({ fields, errors, set }: Props) {
  const api = useApi();
  const numbers = useData("numbers to call from", () =>
    unwrap(api.GET("/user/assistants/phone-numbers", { params: { query: { type: "outbound" } } })),
  ["phone_number_purchased", "phone_number_released", "phone_number_suspended"]).value;
  const { phone_number_ids: chosen } = fields;
  const error = errorOf(errors, "phone_number_ids");
  return (
    <fieldset>
      <legend>Numbers it calls from</legend>
      <p class="soft">
        {numbers?.length === 0
          ? <>You have none: the assistant’s or the carrier’s own is used. <a href="#/numbers/buy">Buy a number</a></>
          : "Used in turn. None: the assistant’s or the carrier’s own is used."}
      </p>
      {numbers !== null && numbers.length > 0 && (
        <div class="campaigns-checks" role="group" aria-label="Numbers it calls from">
          {numbers.map(({ id, phone_number: number, type_label: type }) => (
            <label key={id} class="campaigns-check">
              <input
                type="checkbox" checked={chosen.includes(id)}
                onChange={({ currentTarget: { checked } }) => set({
                  phone_number_ids: checked ? [...chosen, id] : chosen.filter((one) => one !== id),
                })}
              />
              {formatPhone(number)} <small>{t(type)}</small>
            </label>
          ))}
        </div>
      )}
      {error && <p class="form-error">{error}</p>}
    </fieldset>
  );
}
