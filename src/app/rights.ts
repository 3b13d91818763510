// Which right each route of an account takes, and under which name its deed stands in the audit
// log. A route that is not here keeps the server from starting. Used by mount.ts; the rights of
// each role are in features/accounts/roles.ts.
import { may, type Right, type Role } from "#features/accounts/roles.ts";
import { Fault } from "#core/faults.ts";
import type { Caller, KeyRoute, Route } from "#http/route.ts";

/** Without an action nothing is noted, or the deed's own command does it. */
type Row = readonly [right: Right, action?: string];

/** Rows are named by method and path, aliases aside. */
export const ROUTE_RIGHTS: Record<string, Row> = {
  "GET /user/me": ["view"],
  "GET /user/settings": ["view"],
  "PUT /user/settings": ["build", "settings.update"],
  "GET /user/overview": ["view"],
  "GET /user/server": ["audit"],
  "GET /user/first-steps": ["view"],
  "PUT /user/first-steps": ["build", "first_steps.update"],
  "GET /user/views": ["view"],
  "POST /user/views": ["answer"],
  "DELETE /user/views/{id}": ["answer"],
  "GET /user/templates": ["view"],
  "GET /user/template-sets": ["view"],
  "POST /user/template-sets": ["build", "template_set.create"],
  "DELETE /user/template-sets/{id}": ["build", "template_set.delete"],
  "GET /user/costs": ["money"],
  "GET /user/ledger": ["money"],
  "GET /user/ledger/verification": ["money"],
  "GET /user/stream": ["view"],
  "POST /user/stream-tickets": ["view"],
  "GET /user/events": ["view"],

  "GET /user/api-keys": ["keys"],
  "POST /user/api-keys": ["keys"],
  "DELETE /user/api-keys/{id}": ["keys"],
  "POST /user/dashboard-sessions": ["view"],
  "GET /user/members": ["view"],
  "PATCH /user/members/{id}": ["members"],
  "DELETE /user/members/{id}": ["members"],
  "POST /user/members/{id}/password-link": ["members"],
  "GET /user/invitations": ["members"],
  "POST /user/invitations": ["members"],
  "DELETE /user/invitations/{id}": ["members"],
  "PUT /user/password": ["own"],
  "GET /user/sessions": ["own"],
  "DELETE /user/sessions/{id}": ["own"],
  "GET /user/audit": ["audit"],
  "GET /user/audit/stream": ["audit"],

  "GET /user/assistants/languages": ["view"],
  "GET /user/assistants/models": ["view"],
  "GET /user/assistants/voices": ["view"],
  "GET /user/assistants/synthesizer-providers": ["view"],
  "GET /user/assistants/transcriber-providers": ["view"],
  "GET /user/assistants/phone-numbers": ["view"],
  "GET /user/assistants/get": ["view"],
  "GET /user/assistants": ["view"],
  "GET /user/assistants/outbound": ["view"],
  "GET /user/assistant/{id}": ["view"],
  "POST /user/assistant": ["build", "assistant.create"],
  "PUT /user/assistant/{id}": ["build", "assistant.update"],
  "PATCH /user/assistant/{id}": ["build", "assistant.update"],
  "DELETE /user/assistant/{id}": ["build", "assistant.delete"],
  "POST /user/assistants/enable-webhook": ["build", "assistant.enable_webhook"],
  "POST /user/assistants/disable-webhook": ["build", "assistant.disable_webhook"],
  "POST /user/assistants/enable-inbound-webhook": ["build", "assistant.enable_webhook"],
  "POST /user/assistants/disable-inbound-webhook": ["build", "assistant.disable_webhook"],
  "POST /user/assistants/enable-conversation-ended-webhook": ["build", "assistant.enable_webhook"],
  "POST /user/assistants/disable-conversation-ended-webhook": ["build", "assistant.disable_webhook"],
  "GET /user/folders": ["view"],
  "POST /user/folder": ["build", "folder.create"],
  "PUT /user/folder/{id}": ["build", "folder.update"],
  "DELETE /user/folder/{id}": ["build", "folder.delete"],
  "GET /user/labels": ["view"],
  "POST /user/label": ["build", "label.create"],
  "PUT /user/label/{id}": ["build", "label.update"],
  "DELETE /user/label/{id}": ["build", "label.delete"],

  "GET /user/tools": ["view"],
  "POST /user/tools/mcp": ["build", "tool.list"],
  "POST /user/tools/{id}/refresh": ["build", "tool.refresh"],
  "GET /user/tools/{id}": ["view"],
  "POST /user/tools": ["build", "tool.create"],
  "PUT /user/tools/{id}": ["build", "tool.update"],
  "PATCH /user/tools/{id}": ["build", "tool.update"],
  "DELETE /user/tools/{id}": ["build", "tool.delete"],
  "POST /user/tools/{id}/try": ["build", "tool.try"],
  "POST /user/tools/try": ["build", "tool.try"],
  "GET /user/tools/{id}/calls": ["view"],
  "GET /user/knowledgebases": ["view"],
  "GET /user/knowledgebases/{id}": ["view"],
  "POST /user/knowledgebases": ["build", "knowledgebase.create"],
  "PUT /user/knowledgebases/{id}": ["build", "knowledgebase.update"],
  "PATCH /user/knowledgebases/{id}": ["build", "knowledgebase.update"],
  "DELETE /user/knowledgebases/{id}": ["build", "knowledgebase.delete"],
  "POST /user/knowledgebases/{id}/search": ["view"],
  "GET /user/knowledgebases/{id}/documents": ["view"],
  "GET /user/knowledgebases/{id}/documents/{document_id}": ["view"],
  "GET /user/knowledgebases/{id}/documents/{document_id}/chunks": ["view"],
  "POST /user/knowledgebases/{id}/documents/{document_id}/read": ["build", "document.read_again"],
  "POST /user/knowledgebases/{id}/documents": ["build", "document.create"],
  "PUT /user/knowledgebases/{id}/documents/{document_id}": ["build", "document.update"],
  "PATCH /user/knowledgebases/{id}/documents/{document_id}": ["build", "document.update"],
  "DELETE /user/knowledgebases/{id}/documents/{document_id}": ["build", "document.delete"],
  "GET /user/assistants/{id}/identity-secret": ["view"],
  "POST /user/assistants/{id}/identity-secret": ["build", "assistant.new_identity_secret"],
  "GET /user/assistants/{id}/calendar": ["view"],
  "PUT /user/assistants/{id}/calendar": ["build", "calendar.update"],
  "GET /user/assistants/{id}/appointments": ["view"],
  "POST /user/assistants/{id}/appointments": ["answer", "appointment.create"],
  "DELETE /user/appointments/{id}": ["answer", "appointment.delete"],

  "GET /user/conversations": ["view"],
  "GET /user/conversations/{uuid}": ["view"],
  "GET /user/conversations/{uuid}/messages": ["view"],
  "POST /user/conversations/{uuid}/messages": ["answer"],
  "POST /user/conversations/{uuid}/typing": ["answer"],
  "POST /user/conversations/{uuid}/take-over": ["answer", "conversation.take_over"],
  "POST /user/conversations/{uuid}/hand-back": ["answer", "conversation.hand_back"],
  "POST /user/conversations/{uuid}/request-human": ["answer", "conversation.request_human"],
  "POST /user/conversations/{uuid}/end": ["answer", "conversation.end"],
  "POST /user/conversations/{uuid}/assign": ["answer", "conversation.assign"],
  "POST /automate/conversations/{uuid}/enable-ai": ["answer", "conversation.hand_back"],
  "POST /automate/conversations/{uuid}/disable-ai": ["answer", "conversation.take_over"],
  "POST /user/ai/generate-reply": ["answer"],
  "POST /user/conversations/{uuid}/read": ["answer"],
  "POST /user/conversations/{uuid}/callback/done": ["answer", "conversation.callback_done"],
  "GET /user/conversations/{uuid}/callbacks": ["view"],
  "GET /user/conversations/{uuid}/labels": ["view"],
  "PUT /user/conversations/{uuid}/labels": ["answer", "conversation.set_labels"],
  "GET /user/inbox": ["view"],
  "GET /user/avatar": ["view"],
  "PUT /user/avatar": ["answer"],
  "GET /user/push": ["answer"],
  "POST /user/push/subscriptions": ["answer"],
  "DELETE /user/push/subscriptions": ["view"],
  "GET /user/conversations/{uuid}/notes": ["view"],
  "POST /user/conversations/{uuid}/notes": ["answer", "conversation.note"],
  "GET /user/canned-replies": ["view"],
  "POST /user/canned-replies": ["answer", "canned_reply.create"],
  "PUT /user/canned-replies/{id}": ["answer", "canned_reply.update"],
  "DELETE /user/canned-replies/{id}": ["answer", "canned_reply.delete"],

  "GET /user/calls": ["view"],
  "GET /user/calls/live": ["view"],
  "GET /user/calls/{id}": ["view"],
  "GET /user/calls/{id}/stream": ["view"],
  "POST /user/calls/{id}/say": ["answer", "call.say"],
  "POST /user/calls/{id}/mute": ["answer", "call.mute"],
  "POST /user/calls/{id}/end": ["answer", "call.end"],
  "POST /user/calls/{id}/whisper": ["answer", "call.whisper"],
  "POST /user/calls/{id}/take-over": ["answer", "call.take_over"],
  "POST /user/calls/{id}/hand-back": ["answer", "call.hand_back"],
  "DELETE /user/calls/{id}": ["build", "call.delete"],
  "POST /user/make_call": ["build", "call.create"],
  "POST /user/try_call": ["build", "call.create"],

  "GET /user/leads": ["view"],
  "GET /user/leads/{id}": ["view"],
  "POST /user/lead": ["answer", "lead.create"],
  "PUT /user/leads/{id}": ["answer", "lead.update"],
  "PATCH /user/leads/{id}": ["answer", "lead.update"],
  "DELETE /user/leads/{id}": ["build", "lead.delete"],
  "POST /user/leads/import": ["build", "lead.import"],
  "GET /user/blocked-numbers": ["view"],
  "POST /user/blocked-numbers": ["answer", "blocked_number.create"],
  "DELETE /user/blocked-numbers": ["answer", "blocked_number.delete"],
  "GET /user/campaigns": ["view"],
  "GET /user/campaigns/{id}": ["view"],
  "GET /user/campaigns/{id}/lead-counts": ["view"],
  "GET /user/campaigns/{id}/figures": ["view"],
  "POST /user/campaigns/{id}/retry": ["build", "campaign.retry"],
  "POST /user/campaigns": ["build", "campaign.create"],
  "POST /user/campaigns/update-status": ["build", "campaign.set_status"],
  "PUT /user/campaigns/{id}": ["build", "campaign.update"],
  "PATCH /user/campaigns/{id}": ["build", "campaign.update"],
  "DELETE /user/campaigns/{id}": ["build", "campaign.delete"],

  "GET /user/phone-numbers/all": ["view"],
  "GET /user/phone-numbers": ["view"],
  "GET /user/phone-numbers/search": ["view"],
  "GET /user/phone-numbers/{id}": ["view"],
  "POST /user/phone-numbers/purchase": ["buy", "phone_number.purchase"],
  "PUT /user/phone-numbers/{id}": ["buy", "phone_number.update"],
  "DELETE /user/phone-numbers/{id}": ["buy", "phone_number.release"],
  "GET /user/phone-numbers/sip-trunks": ["view"],
  "GET /user/phone-numbers/sip-trunks/{id}": ["view"],
  "POST /user/phone-numbers/sip-trunks": ["buy", "sip_trunk.create"],
  "PUT /user/phone-numbers/sip-trunks/{id}": ["buy", "sip_trunk.update"],

  "POST /user/sms": ["answer", "sms.send"],
  "GET /user/whatsapp/senders": ["view"],
  "GET /user/whatsapp/senders/{id}/templates": ["view"],
  "GET /user/whatsapp/session-status": ["view"],
  "POST /user/whatsapp/send": ["answer", "whatsapp.send"],
  "POST /user/whatsapp/send-freeform": ["answer", "whatsapp.send"],

  "GET /user/webhook-endpoints": ["view"],
  "GET /user/webhook-endpoints/{id}": ["view"],
  "POST /user/webhook-endpoints": ["build", "webhook.create"],
  "PUT /user/webhook-endpoints/{id}": ["build", "webhook.update"],
  "DELETE /user/webhook-endpoints/{id}": ["build", "webhook.delete"],
  "POST /user/webhook-endpoints/{id}/rotate-secret": ["build", "webhook.rotate_secret"],
  "POST /user/webhook-endpoints/{id}/test": ["build", "webhook.test"],
  "GET /user/webhook-deliveries": ["view"],
  "GET /user/webhook-deliveries/{id}": ["view"],
  "POST /user/webhook-deliveries/{id}/replay": ["build", "webhook.replay"],
};

const keyOf = ({ method, path }: Pick<Route, "method" | "path">): string => `${method} ${path}`;

export const actionOf = (route: Route): string | null => ROUTE_RIGHTS[keyOf(route)]?.[1] ?? null;

/** Throws where a route of an account has no row. */
export function assertRightsComplete(routes: Route[]): void {
  const without = routes.filter(({ auth }) => auth === "key").map(keyOf)
    .filter((key) => !Object.hasOwn(ROUTE_RIGHTS, key));
  if (without.length === 0) return;
  throw new Error(`app/rights.ts has no right for ${without.join(", ")}`);
}

export function assertMay(caller: Caller, route: KeyRoute): void {
  const [right] = ROUTE_RIGHTS[keyOf(route)] ?? ["members"];
  const role = caller.role as Role;
  if (may(role, right)) return;
  const message = `This takes the right "${right}", which the role ${role} does not have.`;
  throw new Fault(403, message, { extra: { error: "Insufficient permissions", message, right } });
}

/** Whether the caller may steer what it watches, over the same socket. */
export const mayAnswer = ({ role, member, scopes }: Caller): boolean =>
  may(role as Role, "answer") && (member !== undefined || scopes.includes("write"));
