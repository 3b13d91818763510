// Section: the three addresses that receive this assistant's calls and conversations.
import { Toggle } from "#ui/dashboard/kit/controls.tsx";
import { useDraft, type Field } from "#ui/dashboard/pages/assistants/draft.ts";
import { Switch, Text } from "#ui/dashboard/pages/assistants/fields.tsx";
import { about } from "#ui/dashboard/pages/assistants/labels.ts";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

function Summary() {
  const { values } = useDraft();
  const on = [
    values.is_webhook_active === true ? t("after calls") : "",
    values.inbound_webhook_url ? t("before inbound calls") : "",
    values.conversation_ended_webhook_url ? t("after chats") : "",
  ].filter(Boolean);
  const text = on.join(", ");
  return <>{text === "" ? "None" : text.charAt(0).toUpperCase() + text.slice(1)}</>;
}

/** On while it has an address; turning it off removes the address. */
function Address({ name }: { name: Field }) {
  const { values, errors, set } = useDraft();
  const isOn = values[name] !== null;
  const told = about(name);
  return (
    <fieldset>
      <Toggle
        {...told} value={isOn} error={isOn ? undefined : errors[name]}
        onInput={(next) => set(name, next ? "" : null)}
      />
      {isOn && <Text name={name} label={`${told.label}: URL`} hint="" type="url" placeholder="https://" />}
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
          {...about("is_webhook_active")} value={isActive}
          onInput={(next) => set("is_webhook_active", next)}
        />
        {(isActive || values.webhook_url !== null) && (
          <Text name="webhook_url" type="url" placeholder="https://" />
        )}
        {isActive && (
          <div class="form-row">
            <Switch name="send_webhook_only_on_completed" />
            <Switch name="include_recording_in_webhook" />
          </div>
        )}
      </fieldset>
      <Address name="inbound_webhook_url" />
      <Address name="conversation_ended_webhook_url" />
      {values.conversation_ended_webhook_url !== null && (
        <Switch name="conversation_ended_retrigger" />
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
