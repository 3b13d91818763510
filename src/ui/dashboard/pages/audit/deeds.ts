// What was done, to what and with which values, in words; the log has the API's names.
import type { paths } from "#client/client.ts";
import { words } from "#ui/dashboard/kit/format.ts";

export type Entry =
  paths["/user/audit"]["get"]["responses"][200]["content"]["application/json"]["data"][number];

/** The kinds there are to choose from. */
export const THINGS: Readonly<Record<string, string>> = {
  assistant: "Assistants", tool: "Tools", knowledgebase: "Knowledge", document: "Documents",
  campaign: "Campaigns", lead: "Leads", blocked_number: "Blocked numbers", call: "Calls",
  conversation: "Conversations", person: "People who were deleted", phone_number: "Numbers",
  sip_trunk: "SIP trunks", webhook: "Webhooks", api_key: "API keys", member: "Members",
  invitation: "Invitations", session: "Sessions", password: "Passwords",
};

export const DEEDS: Readonly<Record<string, string>> = {
  "api_key.create": "API key created", "api_key.revoke": "API key revoked",
  "appointment.create": "Appointment booked", "appointment.delete": "Appointment cancelled",
  "assistant.create": "Assistant created", "assistant.update": "Assistant changed",
  "assistant.delete": "Assistant deleted", "assistant.test": "Assistant tested",
  "assistant.enable_webhook": "Assistant's webhook switched on",
  "assistant.disable_webhook": "Assistant's webhook switched off",
  "assistant.hear_voice": "Voice previewed",
  "assistant.new_identity_secret": "New secret for signed visitors",
  "balance_alerts.update": "Balance warnings changed",
  "blocked_number.create": "Number blocked", "blocked_number.delete": "Number unblocked",
  "calendar.update": "Calendar changed",
  "call.create": "Call made", "call.delete": "Call deleted", "call.end": "Call ended",
  "call.hand_back": "Call handed back", "call.mute": "Muted in a call", "call.say": "Spoken in a call",
  "call.take_over": "Call taken over", "call.whisper": "Hint during a call",
  "campaign.create": "Campaign created", "campaign.update": "Campaign changed",
  "campaign.delete": "Campaign deleted", "campaign.retry": "Leads of a campaign called again",
  "campaign.set_status": "Campaign started or stopped",
  "canned_reply.create": "Canned reply created", "canned_reply.update": "Canned reply changed",
  "canned_reply.delete": "Canned reply deleted",
  "conversation.assign": "Conversation assigned", "conversation.callback_done": "Called back",
  "conversation.delete": "Conversation deleted", "conversation.end": "Conversation ended",
  "conversation.hand_back": "Conversation handed back", "conversation.note": "Note written",
  "conversation.request_human": "Person asked for", "conversation.set_labels": "Labels changed",
  "conversation.take_over": "Conversation taken over",
  "document.create": "Document added", "document.update": "Document changed",
  "document.delete": "Document deleted", "document.read_again": "Document read again",
  "first_steps.update": "First steps hidden",
  "folder.create": "Folder created", "folder.update": "Folder changed",
  "folder.delete": "Folder deleted",
  "invitation.create": "Member invited", "invitation.delete": "Invitation withdrawn",
  "knowledgebase.create": "Knowledgebase created", "knowledgebase.update": "Knowledgebase changed",
  "knowledgebase.delete": "Knowledgebase deleted",
  "label.create": "Label created", "label.update": "Label changed", "label.delete": "Label deleted",
  "lead.create": "Lead added", "lead.update": "Lead changed", "lead.delete": "Lead deleted",
  "lead.import": "Leads imported",
  "member.join": "Member joined", "member.link": "Member linked to a single sign-on",
  "member.remove": "Member removed", "member.update": "Member changed",
  "password.change": "Password changed", "password.reset": "Link for a new password made",
  "person.delete": "Person deleted",
  "phone_number.purchase": "Number bought", "phone_number.update": "Number changed",
  "phone_number.release": "Number released",
  "session.open": "Signed in", "session.close": "Signed out",
  "settings.update": "Account settings changed",
  "sip_trunk.create": "SIP trunk created", "sip_trunk.update": "SIP trunk changed",
  "sms.send": "SMS sent", "whatsapp.send": "WhatsApp message sent",
  "template_set.create": "Template set kept", "template_set.delete": "Template set deleted",
  "tool.create": "Tool created", "tool.update": "Tool changed", "tool.delete": "Tool deleted",
  "tool.list": "Tools of an MCP server listed", "tool.refresh": "Tool's parameters read again",
  "tool.try": "Tool tested",
  "top_up.create": "Money added",
  "webhook.create": "Webhook created", "webhook.update": "Webhook changed",
  "webhook.delete": "Webhook deleted", "webhook.test": "Webhook tested",
  "webhook.replay": "Webhook sent again", "webhook.rotate_secret": "New webhook secret",
};

/** An action that is not listed here is shown by its name in the log. */
export const deedOf = ({ action }: Entry): string => DEEDS[action] ?? words(action.replace(".", " "));

/** Keyed by the action where it has its own kind of object, else by the object's type. */
const PAGES: Readonly<Record<string, string>> = {
  assistant: "assistants", calendar: "assistants", call: "calls", campaign: "campaigns",
  conversation: "conversations", knowledgebase: "knowledgebases", lead: "leads", tool: "tools",
  webhook: "webhooks/endpoints", "webhook.replay": "webhooks/deliveries",
};
const UUID = /^[\da-f]{8}-[\da-f-]{27}$/;

type Values = Record<string, unknown>;
const valuesOf = (value: unknown): Values =>
  (typeof value === "object" && value !== null ? value as Values : {});

/** The object's name, else its id; and the link to it, unless it was deleted. */
export function objectOf(
  { action, object, details }: Entry,
): { name: string; href: string | null } {
  const { before, after, ...rest } = details;
  const { name, phone_number: phone, email, shortcut } =
    { ...rest, ...valuesOf(before), ...valuesOf(after) };
  const called = [name, phone, email, shortcut].find((one) => typeof one === "string" && one !== "");
  const id = object?.id ?? null;
  const isTalk = id !== null && UUID.test(id);
  const page = isTalk ? PAGES.conversation : PAGES[action] ?? PAGES[object?.type ?? ""];
  const isGone = action.endsWith(".delete");
  return {
    name: (called as string | undefined) ?? (isTalk ? id.slice(0, 8) : id ?? "–"),
    href: page && id !== null && !isGone ? `#/${page}/${id}` : null,
  };
}

const shown = (value: unknown): string =>
  value === null || value === undefined || value === "" ? "–"
    : typeof value === "object" ? JSON.stringify(value) : String(value as string | number | boolean);

/** The values, by the API's names, where the log has them; else only the names of the fields. */
export function detailsOf({ details }: Entry): string {
  const { before, after, fields, name: _called, ...rest } = details;
  const [was, is] = [valuesOf(before), valuesOf(after)];
  const isChange = before !== undefined && after !== undefined;
  const texts = Object.entries({ ...was, ...is, ...rest }).map(([name, value]) =>
    `${name}: ${isChange && name in was ? `${shown(was[name])} → ` : ""}${shown(value)}`);
  if (texts.length > 0) return texts.join(", ");
  return Array.isArray(fields) ? fields.join(", ") : "–";
}
