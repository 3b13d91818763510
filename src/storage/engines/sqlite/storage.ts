// The embedded storage engine as a whole: opens the file and builds every store over it. Called by
// app.ts and the command line.
import type { Storage } from "#storage/storage.ts";
import { createAccountStore } from "#storage/accounts.ts";
import { createAssistantStore } from "#storage/assistants.ts";
import { createCalendarStore } from "#storage/calendar.ts";
import { createCallStore } from "#storage/calls.ts";
import { createCampaignStore } from "#storage/campaigns.ts";
import { createConversationStore, createDeskStore } from "#storage/conversations.ts";
import { createEventLog } from "#storage/events.ts";
import { createGroupStores } from "#storage/groups.ts";
import { createKnowledgebaseStore } from "#storage/knowledgebases.ts";
import { createLeadStore } from "#storage/leads.ts";
import { createLedgerReader, createStatementStore } from "#storage/ledger.ts";
import { createOverviewStore } from "#storage/overview.ts";
import { createNumberInventory, createPhoneNumberStore } from "#storage/phone-numbers.ts";
import { createTrimLog } from "#storage/retention.ts";
import { createSipTrunkStore } from "#storage/sip-trunks.ts";
import { createToolJournal, createToolStore } from "#storage/tools.ts";
import { createEvaluationStore } from "#storage/conversation-evaluations.ts";
import { createWebhookStore } from "#storage/webhooks.ts";
import type { Writer } from "#storage/writer.ts";
import { createReader, type SqliteReader } from "./reader.ts";
import { createSearchIndex } from "./search.ts";
import { createInlineWriter } from "./writer.ts";

/** `inline`: writes on the caller's thread (the CLI); else by the writer's thread (the server). */
export async function openStorage(
  dataDir: string, writing: "inline" | Promise<Writer>,
): Promise<Storage> {
  const writer: Writer = writing === "inline"
    ? createInlineWriter(dataDir, { migrate: true })
    : await writing;
  return storageOver(createReader(dataDir), writer);
}

/** The stores over what reads and what writes. */
export function storageOver(reader: SqliteReader, writer: Writer): Storage {
  return {
    accounts: createAccountStore(reader, writer),
    assistants: createAssistantStore(reader, writer),
    ...createGroupStores(reader, writer),
    phoneNumbers: createPhoneNumberStore(reader, writer),
    numberInventory: createNumberInventory(reader, writer),
    sipTrunks: createSipTrunkStore(reader, writer),
    knowledgebases: createKnowledgebaseStore(reader, writer, createSearchIndex(reader)),
    tools: createToolStore(reader, writer),
    toolJournal: createToolJournal(writer),
    calendars: createCalendarStore(reader, writer),
    calls: createCallStore(reader, writer),
    leads: createLeadStore(reader, writer),
    campaigns: createCampaignStore(reader, writer),
    conversations: createConversationStore(reader, writer),
    desk: createDeskStore(writer),
    webhooks: createWebhookStore(reader, writer),
    evaluations: createEvaluationStore(reader, writer),
    events: createEventLog(reader),
    ledger: createLedgerReader(reader),
    overview: createOverviewStore(reader),
    statements: createStatementStore(reader),
    trimLog: createTrimLog(reader, writer),
    failure: () => writer.failure(),
    close: async () => {
      await reader.close();
      await writer.close();
    },
  };
}
