// The embedded storage engine as a whole: opens the file and builds every store port over it. A
// second engine would be a folder beside this one with a function of the same shape.
import type { AccountStore } from "../../accounts/accounts.ts";
import type { OverviewStore } from "../../accounts/overview.ts";
import type { StatementStore } from "../../accounts/statements.ts";
import type { AssistantStore } from "../../assistants/assistants.ts";
import type { GroupStore } from "../../assistants/groups.ts";
import type { CallStore } from "../../calls/records.ts";
import type { CalendarStore } from "../../calendar/calendar.ts";
import type { CampaignStore } from "../../campaigns/campaigns.ts";
import type { ConversationStore } from "../../conversations/records.ts";
import type { StorageFailure } from "../../core/faults.ts";
import type { Instant } from "../../core/system.ts";
import type { EventLog } from "../../events/log.ts";
import type { KnowledgebaseStore } from "../../knowledgebases/knowledgebases.ts";
import type { LeadStore } from "../../leads/leads.ts";
import type { NumberInventory } from "../../phone-numbers/inventory.ts";
import type { SipTrunkStore } from "../../phone-numbers/sip-trunks.ts";
import type { ToolJournal } from "../../tools/invocation.ts";
import type { ToolStore } from "../../tools/tools.ts";
import type { EvaluationStore } from "../../conversations/evaluations.ts";
import type { WebhookStore } from "../../webhooks/webhooks.ts";
import { createAccountStore } from "./accounts.ts";
import { createAssistantStore } from "./assistants.ts";
import { createCalendarStore } from "./calendar.ts";
import { createCallStore } from "./calls.ts";
import { createCampaignStore } from "./campaigns.ts";
import { createConversationStore } from "./conversations.ts";
import { openReader } from "./database.ts";
import { createEventLog } from "./events.ts";
import { createGroupStores } from "./groups.ts";
import { createKnowledgebaseStore } from "./knowledgebases.ts";
import { createLeadStore } from "./leads.ts";
import { createLedgerReader, createStatementStore, type LedgerReader } from "./ledger.ts";
import { createOverviewStore } from "./overview.ts";
import {
  createNumberInventory, createPhoneNumberStore, type PhoneNumbersStorage,
} from "./phone-numbers.ts";
import { createSipTrunkStore } from "./sip-trunks.ts";
import { createToolJournal, createToolStore } from "./tools.ts";
import { createEvaluationStore } from "./conversation-evaluations.ts";
import { createWebhookStore } from "./webhooks.ts";
import { createInlineWriter, startThreadWriter, type Writer } from "./writer.ts";

export interface Storage {
  accounts: AccountStore;
  assistants: AssistantStore;
  folders: GroupStore;
  labels: GroupStore;
  phoneNumbers: PhoneNumbersStorage;
  numberInventory: NumberInventory;
  sipTrunks: SipTrunkStore;
  knowledgebases: KnowledgebaseStore;
  tools: ToolStore;
  toolJournal: ToolJournal;
  calendars: CalendarStore;
  calls: CallStore;
  leads: LeadStore;
  campaigns: CampaignStore;
  conversations: ConversationStore;
  webhooks: WebhookStore;
  evaluations: EvaluationStore;
  events: EventLog;
  ledger: LedgerReader;
  overview: OverviewStore;
  statements: StatementStore;
  /** Deletes events and journaled calls older than `before`, oldest first; resolves to how many. */
  trimLog(before: Instant, rows: number): Promise<number>;
  /** Null while commits succeed. Once set, nothing is written any more until a restart. */
  failure(): StorageFailure | null;
  /** Finishes what was asked, checkpoints, closes. Idempotent. */
  close(): Promise<void>;
}

/** `thread`: writes in a thread of their own (the server). `inline`: on the caller's (the CLI). */
export async function openStorage(dataDir: string, mode: "thread" | "inline"): Promise<Storage> {
  const writer: Writer = mode === "thread"
    ? await startThreadWriter(dataDir)
    : createInlineWriter(dataDir, { migrate: true });
  const reader = openReader(dataDir);
  return {
    accounts: createAccountStore(reader, writer),
    assistants: createAssistantStore(reader, writer),
    ...createGroupStores(reader, writer),
    phoneNumbers: createPhoneNumberStore(reader, writer),
    numberInventory: createNumberInventory(reader, writer),
    sipTrunks: createSipTrunkStore(reader, writer),
    knowledgebases: createKnowledgebaseStore(reader, writer),
    tools: createToolStore(reader, writer),
    toolJournal: createToolJournal(writer),
    calendars: createCalendarStore(reader, writer),
    calls: createCallStore(reader, writer),
    leads: createLeadStore(reader, writer),
    campaigns: createCampaignStore(reader, writer),
    conversations: createConversationStore(reader, writer),
    webhooks: createWebhookStore(reader, writer),
    evaluations: createEvaluationStore(reader, writer),
    events: createEventLog(reader),
    ledger: createLedgerReader(reader),
    overview: createOverviewStore(reader),
    statements: createStatementStore(reader),
    trimLog: async (before, rows) =>
      await writer.write("events.trim", { before, rows })
        + await writer.write("tools.trimCalls", { before, rows }),
    failure: () => writer.failure(),
    close: async () => {
      if (reader.open) reader.close();
      await writer.close();
    },
  };
}
