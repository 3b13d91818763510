// The storage port: everything the rest of the program may ask of a store, whichever engine is
// below. Each store is declared by the feature it serves; an engine (engines/) opens all at once.
import type { NewNode, NodeStore } from "#cluster/nodes.ts";
import type { FirstStepStore } from "#features/accounts/overview/first-steps.ts";
import type { SavedViewStore } from "#features/accounts/overview/saved-views.ts";
import type { AuditStore } from "#features/accounts/audit.ts";
import type { AccountStore } from "#features/accounts/accounts.ts";
import type { UserStore } from "#features/accounts/people/users.ts";
import type { BalanceStore } from "#features/accounts/money/balance.ts";
import type { CostStore } from "#features/accounts/money/costs.ts";
import type { TopUpStore } from "#features/accounts/money/top-ups.ts";
import type { OverviewStore } from "#features/accounts/overview/overview.ts";
import type { StatementStore } from "#features/accounts/money/statements.ts";
import type { UsedTickets } from "#features/accounts/people/tickets.ts";
import type { AssistantStore } from "#features/assistants/assistants.ts";
import type { GroupStore } from "#features/assistants/groups.ts";
import type { CallStore } from "#features/calls/records/records.ts";
import type { CalendarStore } from "#features/calendar/calendar.ts";
import type { CampaignStore } from "#features/campaigns/campaigns.ts";
import type { CallbackStore } from "#features/conversations/desk/callbacks.ts";
import type { ReadingStore } from "#features/conversations/desk/reading.ts";
import type { PersonStore } from "#features/calls/records/person-data.ts";
import type { BulkStore } from "#features/conversations/bulk.ts";
import type { ConversationStore, DeskStore } from "#features/conversations/records.ts";
import type { InboxStore } from "#features/conversations/desk/inbox.ts";
import type { RatingStore } from "#features/conversations/visitors/ratings.ts";
import type { StorageFailure } from "#core/faults.ts";
import type { Instant } from "#core/system.ts";
import type { EventLog } from "#events/log.ts";
import type { KeptAnswers } from "#core/kept-answers.ts";
import type { KnowledgebaseStore } from "#features/knowledgebases/knowledgebases.ts";
import type { LeadStore } from "#features/leads/leads.ts";
import type { NumberInventory } from "#features/phone-numbers/inventory.ts";
import type { SipTrunkStore } from "#features/phone-numbers/sip-trunks.ts";
import type { TemplateStore } from "#features/templates/templates.ts";
import type { ToolJournal } from "#features/tools/invocation.ts";
import type { ToolStore } from "#features/tools/tools.ts";
import type { EvaluationStore } from "#features/conversations/evaluations.ts";
import type { AttachmentStore } from "#features/conversations/attachments.ts";
import type { PushStore } from "#features/conversations/desk/push.ts";
import type { DeskViewStore } from "#features/conversations/desk/view.ts";
import type { IdentityStore } from "#features/conversations/visitors/identity.ts";
import type { WebhookStore } from "#features/webhooks/webhooks.ts";
import type { LedgerReader } from "./accounts/ledger-reading.ts";
import type { PhoneNumbersStorage } from "./phone-numbers/phone-numbers.ts";
import type { RemovalStore } from "./removals.ts";

export interface Storage {
  /** Distinguishes this database from every other, also from a copy of it; null: a local file. */
  databaseId: string | null;
  /** The node that owns what this process begins; 0: it has not joined, and owns nothing. */
  nodeId(): number;
  /** Registers this process as a node of the database; called once, before anything begins. */
  join(self: NewNode): Promise<number>;
  nodes: NodeStore;
  accounts: AccountStore;
  usedTickets: UsedTickets;
  keptAnswers: KeptAnswers;
  users: UserStore;
  attachments: AttachmentStore;
  audit: AuditStore;
  firstSteps: FirstStepStore;
  savedViews: SavedViewStore;
  templates: TemplateStore;
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
  bulk: BulkStore;
  personData: PersonStore;
  desk: DeskStore;
  deskView: DeskViewStore;
  callbacks: CallbackStore;
  reading: ReadingStore;
  removals: RemovalStore;
  push: PushStore;
  identity: IdentityStore;
  inbox: InboxStore;
  ratings: RatingStore;
  webhooks: WebhookStore;
  evaluations: EvaluationStore;
  events: EventLog;
  ledger: LedgerReader;
  overview: OverviewStore;
  costs: CostStore;
  balance: BalanceStore;
  topUps: TopUpStore;
  statements: StatementStore;
  /** Deletes events and journaled calls older than `before`, oldest first; resolves to how many. */
  trimLog(before: Instant, rows: number): Promise<number>;
  /** Null while commits succeed. Once set, nothing is written until a restart. */
  failure(): StorageFailure | null;
  /** False while reads find no connection, though writes may; heals by itself. */
  canRead(): boolean;
  /** True while `failure` is set, and while there is no room, which heals by itself. */
  isRefusing(): boolean;
  /** Finishes what was asked, checkpoints, closes. Idempotent. */
  close(): Promise<void>;
}
