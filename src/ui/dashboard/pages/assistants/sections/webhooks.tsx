// Section: the three addresses that receive this assistant's calls and conversations.
import { Toggle } from "#ui/dashboard/kit/controls.tsx";
import { useDraft, type Field } from "#ui/dashboard/pages/assistants/draft.ts";
import { Switch, Text } from "#ui/dashboard/pages/assistants/fields.tsx";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";

function Summary() {
  const { values } = useDraft();
  const on = [
    values.is_webhook_active === true ? "after calls" : "",
    values.inbound_webhook_url ? "before inbound calls" : "",
    values.conversation_ended_webhook_url ? "after chats" : "",
  ].filter(Boolean);
  const text = on.join(", ");
  return <>{text === "" ? "None" : text.charAt(0).toUpperCase() + text.slice(1)}</>;
}

/** On while it has an address; switched off, it has none. */
function Address({ name, label, hint }: { name: Field; label: string; hint: string }) {
  const { values, errors, set } = useDraft();
  const isOn = values[name] !== null;
  return (
    <fieldset>
      <Toggle
        label={label} hint={hint} value={isOn} error={isOn ? undefined : errors[name]}
        onInput={(next) => set(name, next ? "" : null)}
      />
      {isOn && <Text name={name} label={`${label}: URL`} type="url" placeholder="https://" />}
    </fieldset>
  );
}

function Body() {
  const { values, set } = useDraft();
  const isActive = values.is_webhook_active === true;
  return (
    <>
      <fieldset>
        <Toggle
          label="After a call" hint="Is sent transcript, evaluation, cost and recording."
          value={isActive} onInput={(next) => set("is_webhook_active", next)}
        />
        {(isActive || values.webhook_url !== null) && (
          <Text name="webhook_url" label="After a call: URL" type="url" placeholder="https://" />
        )}
        {isActive && (
          <div class="form-row">
            <Switch
              name="send_webhook_only_on_completed" label="Only for completed calls"
              hint="Not for unanswered ones."
            />
            <Switch name="include_recording_in_webhook" label="With a link to the recording" />
          </div>
        )}
      </fieldset>
      <Address
        name="inbound_webhook_url" label="Before an inbound call"
        hint="Is asked for variables while it rings; the call waits two seconds at most."
      />
      <Address
        name="conversation_ended_webhook_url" label="After a chat"
        hint="Is sent the messages when a conversation has ended."
      />
      {values.conversation_ended_webhook_url !== null && (
        <Switch
          name="conversation_ended_retrigger" label="Once more when the chat goes on and ends again"
        />
      )}
      <p><small>
        Signed webhooks of the whole account, and what was delivered: <a href="#/webhooks">Webhooks</a>.
      </small></p>
    </>
  );
}

export const WEBHOOKS: SectionSpec = {
  id: "webhooks", title: "Webhooks", Summary, Body,
  fields: [
    "is_webhook_active", "webhook_url", "send_webhook_only_on_completed",
    "include_recording_in_webhook", "inbound_webhook_url", "conversation_ended_webhook_url",
    "conversation_ended_retrigger",
  ],
};
