// Every command the writer knows, by name. A feature's commands are named `<feature>.<use case>`.
import { accountCommands } from "./accounts.ts";
import { assistantCommands } from "./assistants.ts";
import { attachmentCommands } from "./attachments.ts";
import { auditCommands } from "./audit-log.ts";
import { balanceCommands } from "./balance.ts";
import { calendarCommands } from "./calendar.ts";
import { callCommands } from "./call-commands.ts";
import { callbackCommands } from "./callbacks.ts";
import { bulkCommands } from "./conversation-deletion.ts";
import { campaignCommands } from "./campaign-commands.ts";
import { costCommands } from "./costs.ts";
import { conversationCommands } from "./conversation-commands.ts";
import { evaluationCommands } from "./conversation-evaluations.ts";
import { withDeeds } from "./deeds.ts";
import { deskCommands } from "./desk-commands.ts";
import { deskViewCommands } from "./desk-view.ts";
import { eventCommands } from "./events.ts";
import { firstDayCommands } from "./first-day.ts";
import { groupCommands } from "./groups.ts";
import { identityCommands } from "./identity.ts";
import { inboxCommands } from "./inbox.ts";
import { knowledgebaseCommands } from "./knowledgebases.ts";
import { leadCommands } from "./lead-commands.ts";
import { messageSearchCommands } from "./message-search.ts";
import { nodeCommands } from "./nodes.ts";
import { personCommands } from "./person-deletion.ts";
import { phoneNumberCommands } from "./phone-number-commands.ts";
import { passwordTryCommands } from "./password-tries.ts";
import { pushCommands } from "./push.ts";
import { ratingCommands } from "./rating-commands.ts";
import { sipTrunkCommands } from "./sip-trunks.ts";
import { readingCommands } from "./reading.ts";
import { removalCommands } from "./removals.ts";
import type { SearchCommands } from "./search.ts";
import type { Sql } from "./sql.ts";
import { templateCommands } from "./templates.ts";
import { toolCommands } from "./tools.ts";
import { turnCommands } from "./turns.ts";
import { ticketCommands } from "./used-tickets.ts";
import { userCommands } from "./user-commands.ts";
import { webhookCommands } from "./webhooks.ts";

export function createCommands(sql: Sql, search: SearchCommands) {
  const records = { ...callCommands(sql), ...bulkCommands(sql, search), ...leadCommands(sql) };
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
    ...campaignCommands(sql),
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

/** Ends of what has begun: nobody asks for them again, so they wait for a storage that is away. */
export const PATIENT: ReadonlySet<keyof AllCommands> = new Set([
  "turns.complete", "turns.fail", "calls.addTranscript", "calls.addTransfer", "calls.change",
  "calls.end", "calls.failTransfer", "calls.finish", "calls.stepTransfer", "tools.finishCall",
  "campaigns.settle", "webhooks.record",
]);
