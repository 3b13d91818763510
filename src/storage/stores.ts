// Every store of the port over what reads, writes and searches. Called by the engines.
import { createAccountStore } from "./accounts/accounts.ts";
import { createAssistantStore } from "./assistants/assistants.ts";
import { createAttachmentStore } from "./conversations/attachments.ts";
import { createAuditStore } from "./accounts/audit-log.ts";
import { createBalanceStore, createTopUpStore } from "./accounts/balance.ts";
import { createCalendarStore } from "./calendar.ts";
import { createCallStore } from "./calls/calls.ts";
import { createCallbackStore } from "./conversations/callbacks.ts";
import { createCampaignStore } from "./campaigns/campaigns.ts";
import { notingDeeds } from "./deeds.ts";
import { createEvaluationStore } from "./conversations/evaluations.ts";
import { createBulkStore } from "./conversations/deletion.ts";
import { createConversationStore, createDeskStore } from "./conversations/conversations.ts";
import type { AllCommands } from "./commands.ts";
import { createCostStore } from "./accounts/costs.ts";
import { createDeskViewStore } from "./conversations/desk-view.ts";
import { createEventLog } from "./events.ts";
import { createFirstStepStore, createSavedViewStore } from "./accounts/first-day.ts";
import { createGroupStores } from "./assistants/groups.ts";
import { createIdentityStore } from "./conversations/identity.ts";
import { createInboxStore } from "./conversations/inbox.ts";
import { createKnowledgebaseStore } from "./knowledgebases/knowledgebases.ts";
import { createLeadStore } from "./leads/leads.ts";
import { createLedgerReader, createStatementStore } from "./accounts/ledger-reading.ts";
import { createNodeStore, NOBODY } from "./nodes/nodes.ts";
import { createOverviewStore } from "./accounts/overview.ts";
import { createPersonStore } from "./calls/person-deletion.ts";
import { createNumberInventory, createPhoneNumberStore } from "./phone-numbers/phone-numbers.ts";
import { createPushStore } from "./conversations/push.ts";
import { createReadingStore } from "./conversations/reading.ts";
import { createRemovalStore } from "./removals.ts";
import { createTrimLog } from "./retention.ts";
import { createRatingStore } from "./conversations/rating-commands.ts";
import { createSipTrunkStore } from "./phone-numbers/sip-trunks.ts";
import { createToolJournal, createToolStore } from "./tools.ts";
import { createTemplateStore } from "./templates.ts";
import { createKeptAnswers } from "./accounts/kept-answers.ts";
import { createUsedTickets } from "./accounts/used-tickets.ts";
import { createUserStore } from "./accounts/users.ts";
import { createWebhookStore } from "./webhooks/webhooks.ts";
import type { SearchIndex } from "./search/search.ts";
import type { Reader } from "./sql.ts";
import type { Storage } from "./storage.ts";
import { writingAs, type Writer } from "./writer.ts";

type ClosableReader = Reader & { close(): Promise<void> };

/**
 * The reader's `close` waits for reads under way, the writer's for commands it has accepted. What
 * is written here is written as one node: nobody, until the process joins. `beats`: a reader and a
 * writer for heartbeats alone, which wait for nothing else; null: they share the main ones.
 */
export function storesOver(
  reader: ClosableReader, everybodys: Writer<AllCommands>, search: SearchIndex, joinedAs = NOBODY,
  beats: { reader: ClosableReader; writer: Writer<AllCommands> } | null = null,
): Omit<Storage, "databaseId" | "canRead"> {
  let nodeId = joinedAs;
  const writer = notingDeeds(writingAs(() => nodeId, everybodys));
  const nodes = createNodeStore(
    beats?.reader ?? reader, beats ? writingAs(() => nodeId, beats.writer) : writer);
  return {
    nodeId: () => nodeId,
    join: async (self) => (nodeId = await nodes.join(self)),
    nodes,
    accounts: createAccountStore(reader, writer),
    usedTickets: createUsedTickets(writer),
    keptAnswers: createKeptAnswers(reader, writer),
    users: createUserStore(reader, writer),
    attachments: createAttachmentStore(reader, writer),
    audit: createAuditStore(reader, writer),
    firstSteps: createFirstStepStore(reader, writer),
    savedViews: createSavedViewStore(reader, writer),
    templates: createTemplateStore(reader, writer),
    assistants: createAssistantStore(reader, writer),
    ...createGroupStores(reader, writer),
    phoneNumbers: createPhoneNumberStore(reader, writer),
    numberInventory: createNumberInventory(reader, writer),
    sipTrunks: createSipTrunkStore(reader, writer),
    knowledgebases: createKnowledgebaseStore(reader, writer, search),
    tools: createToolStore(reader, writer),
    toolJournal: createToolJournal(writer),
    calendars: createCalendarStore(reader, writer),
    calls: createCallStore(reader, writer),
    leads: createLeadStore(reader, writer),
    campaigns: createCampaignStore(reader, writer),
    conversations: createConversationStore(reader, writer, search),
    bulk: createBulkStore(writer),
    personData: createPersonStore(reader, writer),
    desk: createDeskStore(reader, writer),
    deskView: createDeskViewStore(reader, writer),
    push: createPushStore(reader, writer),
    callbacks: createCallbackStore(reader, writer),
    reading: createReadingStore(writer),
    removals: createRemovalStore(reader, writer),
    identity: createIdentityStore(reader, writer),
    inbox: createInboxStore(reader, writer, search),
    ratings: createRatingStore(writer),
    webhooks: createWebhookStore(reader, writer),
    evaluations: createEvaluationStore(reader, writer),
    events: createEventLog(reader),
    ledger: createLedgerReader(reader),
    overview: createOverviewStore(reader),
    costs: createCostStore(reader, writer),
    balance: createBalanceStore(reader, writer),
    topUps: createTopUpStore(reader, writer),
    statements: createStatementStore(reader),
    trimLog: createTrimLog(reader, writer),
    failure: () => writer.failure(),
    isRefusing: () => writer.isRefusing(),
    close: async () => {
      await reader.close();
      await writer.close();
      await beats?.reader.close();
      await beats?.writer.close();
    },
  };
}
