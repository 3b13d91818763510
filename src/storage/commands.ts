// Every command the writer knows, by name. A feature's commands are named `<feature>.<use case>`.
import { accountCommands } from "./accounts/accounts.ts";
import { assistantCommands } from "./assistants/assistants.ts";
import { attachmentCommands } from "./conversations/attachments.ts";
import { auditCommands } from "./accounts/audit-log.ts";
import { balanceCommands } from "./accounts/balance.ts";
import { calendarCommands } from "./calendar.ts";
import { callCommands } from "./calls/commands.ts";
import { callbackCommands } from "./conversations/callbacks.ts";
import { bulkCommands } from "./conversations/deletion.ts";
import { campaignCommands } from "./campaigns/commands.ts";
import { costCommands } from "./accounts/costs.ts";
import { conversationCommands } from "./conversations/commands.ts";
import { evaluationCommands } from "./conversations/evaluations.ts";
import { withDeeds } from "./deeds.ts";
import { deskCommands } from "./conversations/desk-commands.ts";
import { deskViewCommands } from "./conversations/desk-view.ts";
import { eventCommands } from "./events.ts";
import { firstDayCommands } from "./accounts/first-day.ts";
import { groupCommands } from "./assistants/groups.ts";
import { identityCommands } from "./conversations/identity.ts";
import { inboxCommands } from "./conversations/inbox.ts";
import { keptAnswerCommands } from "./accounts/kept-answers.ts";
import { knowledgebaseCommands } from "./knowledgebases/knowledgebases.ts";
import { leadCommands } from "./leads/commands.ts";
import { messageSearchCommands } from "./search/message-search.ts";
import { nodeCommands } from "./nodes/nodes.ts";
import { personCommands } from "./calls/person-deletion.ts";
import { phoneNumberCommands } from "./phone-numbers/commands.ts";
import { passwordTryCommands } from "./accounts/password-tries.ts";
import { pushCommands } from "./conversations/push.ts";
import { ratingCommands } from "./conversations/rating-commands.ts";
import { sipTrunkCommands } from "./phone-numbers/sip-trunks.ts";
import { readingCommands } from "./conversations/reading.ts";
import { removalCommands } from "./removals.ts";
import type { SearchCommands } from "./search/search.ts";
import type { Sql } from "./sql.ts";
import { templateCommands } from "./templates.ts";
import { toolCommands } from "./tools.ts";
import { turnCommands } from "./conversations/turns.ts";
import { ticketCommands } from "./accounts/used-tickets.ts";
import { userCommands } from "./accounts/user-commands.ts";
import { webhookCommands } from "./webhooks/webhooks.ts";

export function createCommands(sql: Sql, search: SearchCommands) {
  const campaigns = campaignCommands(sql);
  const records = {
    ...callCommands(sql, campaigns), ...bulkCommands(sql, search), ...leadCommands(sql),
  };
  return withDeeds(sql, {
    ...records,
    ...personCommands(sql, records),
    ...accountCommands(sql),
    ...assistantCommands(sql),
    ...attachmentCommands(sql),
    ...auditCommands(sql),
    ...balanceCommands(sql),
    ...calendarCommands(sql),
    ...callbackCommands(sql),
    ...campaigns,
    ...conversationCommands(sql),
    ...costCommands(sql),
    ...evaluationCommands(sql),
    ...deskCommands(sql),
    ...deskViewCommands(sql),
    ...eventCommands(sql),
    ...firstDayCommands(sql),
    ...groupCommands(sql),
    ...identityCommands(sql),
    ...inboxCommands(sql),
    ...keptAnswerCommands(sql),
    ...knowledgebaseCommands(sql, search),
    ...messageSearchCommands(sql, search),
    ...nodeCommands(sql),
    ...phoneNumberCommands(sql),
    ...passwordTryCommands(sql),
    ...pushCommands(sql),
    ...readingCommands(sql),
    ...removalCommands(sql),
    ...ratingCommands(sql),
    ...sipTrunkCommands(sql),
    ...templateCommands(sql),
    ...ticketCommands(sql),
    ...toolCommands(sql),
    ...turnCommands(sql),
    ...userCommands(sql),
    ...webhookCommands(sql),
  });
}

export type AllCommands = ReturnType<typeof createCommands>;

/**
 * Ends of what has begun. Nobody asks for them again, so they wait until a storage that is
 * unreachable comes back.
 */
export const PATIENT: ReadonlySet<keyof AllCommands> = new Set([
  "turns.complete", "turns.fail", "calls.addTranscript", "calls.addTransfer", "calls.change",
  "calls.end", "calls.failTransfer", "calls.finish", "calls.stepTransfer", "tools.finishCall",
  "campaigns.settle", "conversations.evaluated", "keptAnswers.release", "phoneNumbers.complete",
  "phoneNumbers.fail", "webhooks.record", "webhooks.giveUp",
]);
