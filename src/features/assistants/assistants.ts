// Assistants: record, store port, and the use cases of creating, changing and finding them. Rules
// of single settings are in settings.ts, those of several together in rules.ts. A deleted assistant
// is never found; its row stays for the conversations and calls that name it.
import { changing } from "#core/changing.ts";
import { Fault, type FieldErrors } from "#core/faults.ts";
import type { SecretBox } from "#core/secrets.ts";
import type { Instant, System } from "#core/system.ts";
import {
  takesInboundCalls, type PhoneNumber, type PhoneNumberStore,
} from "#features/phone-numbers/phone-numbers.ts";
import type { BuiltInTool } from "./built-in-tools.ts";
import { createCalcomKeys, type CalendarIntegration, type Place } from "./calcom-keys.ts";
import type { Catalogs } from "./catalogs.ts";
import { withKeptOrigins } from "./origin-lists.ts";
import { findErrors, firstChoices, invalid, modeDefaults, NUMBER_TAKEN, type References } from "./rules.ts";
import {
  defaults, normalized, settingsOf, withNewerSettings, type AssistantSettings,
  type AssistantStatus, type AssistantType, type Field, type Given, type Mode, type Profile,
} from "./settings.ts";

/** Shared by everybody who reads it, so never changed in place. */
export interface Assistant {
  id: number;
  /** What conversations and webhooks call it. */
  uuid: string;
  accountId: number;
  name: string;
  type: AssistantType;
  status: AssistantStatus;
  mode: Mode;
  folderId: number | null;
  phoneNumberId: number | null;
  labelIds: number[];
  /** Everything else, under the contract's names. */
  settings: AssistantSettings;
  createdAt: Instant;
  updatedAt: Instant;
  deletedAt: Instant | null;
}

export type AssistantColumns = Pick<
  Assistant, "name" | "type" | "status" | "mode" | "folderId" | "phoneNumberId" | "labelIds"
>;

/** Refusals decided in the store's transaction, because only there no other write interferes. */
type Refused =
  | { kind: "number_taken" }
  | { kind: "reference_gone"; field: "folder_id" | "phone_number_id" | "label_ids" };
export type CreateOutcome =
  | { kind: "created"; assistantId: number }
  | { kind: "too_many" }
  | Refused;
export type UpdateOutcome =
  | { kind: "updated"; updatedAt: Instant }
  | { kind: "not_found" }
  /** It was changed after `expectedUpdatedAt`. */
  | { kind: "changed" }
  | Refused;

export interface NewAssistant {
  uuid: string;
  accountId: number;
  columns: AssistantColumns;
  settings: AssistantSettings;
  /** The most assistants that the account may have. */
  assistantsMax: number;
  now: Instant;
}

export interface AssistantChange {
  accountId: number;
  assistantId: number;
  expectedUpdatedAt: Instant;
  columns: AssistantColumns;
  settings: AssistantSettings;
  now: Instant;
}

/** The `allowed_origins` of every assistant there is, as one list. */
export interface OriginLists {
  origins: ReadonlySet<string>;
  /** True when any assistant has no list of its own and uses the server's. */
  someUseDefault: boolean;
}

/**
 * Each method is one transaction; writes resolve once they are durable. Reads leave out deleted
 * assistants and return settings as stored, without those introduced after the row was written.
 * `updatedAt` grows with every change of the row, also when a folder, label, number, tool or
 * knowledgebase it named is deleted.
 */
export interface AssistantStore {
  create(args: NewAssistant): Promise<CreateOutcome>;
  update(args: AssistantChange): Promise<UpdateOutcome>;
  /** Releases its phone number. False when the account has no such assistant. */
  remove(args: { accountId: number; assistantId: number; now: Instant }): Promise<boolean>;
  find(accountId: number, assistantId: number): Promise<Assistant | null>;
  /** Looks in all accounts: for ids that came from our own rows, never from a client. */
  findById(assistantId: number): Promise<Assistant | null>;
  /** Looks in all accounts: the uuid is the capability. */
  findByUuid(uuid: string): Promise<Assistant | null>;
  /** Oldest first. */
  list(accountId: number, type: AssistantType | null): Promise<Assistant[]>;
  page(
    accountId: number,
    args: { type: AssistantType | null; page: number; perPage: number },
  ): Promise<{ items: Assistant[]; total: number }>;
  ownsFolder(accountId: number, folderId: number): Promise<boolean>;
  ownsLabel(accountId: number, labelId: number): Promise<boolean>;
  /** The inbound assistant the number is assigned to. */
  inboundAssistantOn(accountId: number, phoneNumberId: number): Promise<number | null>;
  /** Reads every assistant of every account. */
  ownOriginLists(): Promise<OriginLists>;
  /** Built-in tools of every assistant that has a key of Cal.com, deleted ones included. */
  withCalcomKeys(): Promise<(Place & { assistantId: number; tools: BuiltInTool[] })[]>;
  setTools(args: {
    accountId: number; assistantId: number; tools: BuiltInTool[]; now: Instant;
  }): Promise<void>;
}

export type WebhookKind = "post_call" | "inbound" | "conversation_ended";

/** Faults: 404 when the account has no such assistant, 422 that names every field at fault. */
export interface Assistants {
  /** `schemaErrors`: of fields that validation removed from `given`; reported with the rules'. */
  create(accountId: number, given: Given, schemaErrors?: FieldErrors): Promise<Assistant>;
  /** Changes what was sent and nothing else. */
  update(
    accountId: number, assistantId: number, given: Given, schemaErrors?: FieldErrors,
  ): Promise<Assistant>;
  /** The assistant as the change would make it: validated like a change, but not stored. */
  draft: Assistants["update"];
  /** False when the account has no such assistant. */
  remove(accountId: number, assistantId: number): Promise<boolean>;
  find: AssistantStore["find"];
  findById: AssistantStore["findById"];
  findByUuid: AssistantStore["findByUuid"];
  get(accountId: number, assistantId: number): Promise<Assistant>;
  getById(assistantId: number): Promise<Assistant>;
  getByUuid(uuid: string): Promise<Assistant>;
  page: AssistantStore["page"];
  listAll(accountId: number): Promise<Assistant[]>;
  listOutbound(accountId: number): Promise<Assistant[]>;
  /** Null switches it off. */
  setWebhook(
    accountId: number, assistantId: number, kind: WebhookKind, url: string | null,
  ): Promise<Assistant>;
  /** With `inbound` only numbers a new inbound assistant could be given. */
  assignableNumbers(accountId: number, type: AssistantType | null): Promise<AssignableNumber[]>;
  ownOriginLists: AssistantStore["ownOriginLists"];
  /** Null when it was sealed under another secret. */
  calcomKey(assistant: Assistant, tool: CalendarIntegration): string | null;
  /** Seals keys that older versions stored in plain text; called before requests are served. */
  sealKeys(): Promise<void>;
}

export interface AssignableNumber extends PhoneNumber {
  isAvailable: boolean;
}

interface AssistantOptions {
  store: AssistantStore;
  phoneNumbers: PhoneNumberStore;
  catalogs: Catalogs;
  references: References;
  system: System;
  box: SecretBox;
}

type Judged = AssistantOptions & { keys: ReturnType<typeof createCalcomKeys> };

/** Bounds the lists that have no pages. */
const ASSISTANTS_PER_ACCOUNT_MAX = 1000;

export const assistantNotFound = (): Fault => new Fault(404, "Assistant not found");
const assertFound = (assistant: Assistant | null): Assistant => {
  if (!assistant) throw assistantNotFound();
  return assistant;
};
const refusal = (errors: FieldErrors): Fault => new Fault(422, "Validation failed", { errors });

export function createAssistants(given: AssistantOptions): Assistants {
  const keys = createCalcomKeys(given.box);
  const options: Judged = {
    ...given, store: withKeptOrigins(withDefaults(given.store), given.system), keys,
  };
  const { store, system } = options;
  const update: Assistants["update"] = (...args) => changeAssistant(options, ...args);
  return {
    create: (...args) => createAssistant(options, ...args),
    update,
    draft: async (accountId, assistantId, sent, schemaErrors = {}) => {
      const current = assertFound(await store.find(accountId, assistantId));
      const { columns, settings } = await changed(options, current, sent, schemaErrors);
      return { ...current, ...columns, settings };
    },
    remove: (accountId, assistantId) =>
      store.remove({ accountId, assistantId, now: system.now() }),
    find: store.find,
    findById: store.findById,
    findByUuid: store.findByUuid,
    get: async (accountId, assistantId) => assertFound(await store.find(accountId, assistantId)),
    getById: async (assistantId) => assertFound(await store.findById(assistantId)),
    getByUuid: async (uuid) => assertFound(await store.findByUuid(uuid)),
    page: store.page,
    ownOriginLists: store.ownOriginLists,
    listAll: (accountId) => store.list(accountId, null),
    listOutbound: (accountId) => store.list(accountId, "outbound"),
    setWebhook: (accountId, assistantId, kind, url) =>
      update(accountId, assistantId, webhookChange(kind, url)),
    assignableNumbers: (accountId, type) => assignableNumbers(options, accountId, type),
    calcomKey: keys.open,
    sealKeys: async () => {
      for (const { assistantId, tools: open, ...place } of await store.withCalcomKeys()) {
        const tools = keys.closed(place, open);
        if (!tools) continue;
        await store.setTools({
          accountId: place.accountId, assistantId, tools, now: system.now(),
        });
      }
    },
  };
}

/** Rows written before a setting existed are read with its default. */
function withDefaults(store: AssistantStore): AssistantStore {
  // The store gives the same object for as long as nothing changes.
  const completed = new WeakMap<Assistant, Assistant>();
  const complete = (assistant: Assistant): Assistant => {
    const known = completed.get(assistant);
    if (known) return known;
    const whole = { ...assistant, settings: withNewerSettings(assistant.settings) };
    completed.set(assistant, whole);
    return whole;
  };
  const orNull = (assistant: Assistant | null) => assistant && complete(assistant);
  return {
    ...store,
    find: async (accountId, assistantId) => orNull(await store.find(accountId, assistantId)),
    findById: async (assistantId) => orNull(await store.findById(assistantId)),
    findByUuid: async (uuid) => orNull(await store.findByUuid(uuid)),
    list: async (accountId, type) => (await store.list(accountId, type)).map(complete),
    page: async (accountId, args) => {
      const { items, total } = await store.page(accountId, args);
      return { items: items.map(complete), total };
    },
  };
}

function profileOf(assistant: Assistant): Profile {
  return {
    ...assistant.settings,
    name: assistant.name,
    type: assistant.type,
    status: assistant.status,
    mode: assistant.mode,
    folder_id: assistant.folderId,
    phone_number_id: assistant.phoneNumberId,
    label_ids: assistant.labelIds,
  };
}

function columnsOf(profile: Profile): AssistantColumns {
  return {
    name: profile.name,
    type: profile.type,
    status: profile.status,
    mode: profile.mode,
    folderId: profile.folder_id,
    phoneNumberId: profile.phone_number_id,
    labelIds: profile.label_ids,
  };
}

/** Returns the profile, now known to be complete, or throws naming every invalid field. */
async function judge(
  { store, phoneNumbers, catalogs, references }: AssistantOptions,
  { accountId, id }: { accountId: number; id: number | null },
  next: Partial<Profile>,
  given: Given,
  schemaErrors: FieldErrors,
): Promise<Profile> {
  const errors = await findErrors(
    {
      accountId,
      assistantId: id,
      sent: (...fields: Field[]) =>
        id === null || fields.some((field) => given[field] !== undefined),
      next,
      catalogs,
      references,
      owned: {
        folder: (id) => store.ownsFolder(accountId, id),
        label: (id) => store.ownsLabel(accountId, id),
        assistant: async (id) => await store.find(accountId, id) !== null,
        phoneNumber: (id) => phoneNumbers.find(accountId, id),
        inboundAssistantOn: (id) => store.inboundAssistantOn(accountId, id),
      },
    },
    schemaErrors,
  );
  if (Object.keys(errors).length > 0) throw refusal(errors);
  const whole = next as Profile;
  // A knowledgebase is searched by function call unless its passages go into the prompt.
  return whole.knowledgebase_id !== null && whole.knowledgebase_mode === null
    ? { ...whole, knowledgebase_mode: "function_call" }
    : whole;
}

function refusedFault(outcome: Refused): Fault {
  return outcome.kind === "number_taken"
    ? refusal({ phone_number_id: [NUMBER_TAKEN] })
    : refusal({ [outcome.field]: [invalid(outcome.field)] });
}

/** The settings as stored, with every key sealed. */
function keptSettings(
  { keys }: Judged, place: Place, profile: Profile, before: BuiltInTool[],
): AssistantSettings {
  const errors: FieldErrors = {};
  const tools = keys.sealed(place, profile.tools, before, (index) => {
    errors[`tools.${index}.calcom_api_key`] = ["The calcom api key field is required."];
  });
  if (Object.keys(errors).length > 0) throw refusal(errors);
  return settingsOf({ ...profile, tools });
}

async function createAssistant(
  options: Judged,
  accountId: number,
  given: Given,
  schemaErrors: FieldErrors = {},
): Promise<Assistant> {
  const { store, system, catalogs, references } = options;
  const chosen = normalized(given);
  const next = { ...defaults(), ...firstChoices(chosen, catalogs, references), ...chosen };
  // Fields that failed validation are not judged again by the rules.
  for (const field of Object.keys(schemaErrors)) delete next[field as Field];
  const profile = await judge(options, { accountId, id: null }, next, given, schemaErrors);
  const [uuid, now] = [system.uuid(), system.now()];
  const columns = columnsOf(profile);
  const settings = keptSettings(options, { accountId, uuid }, profile, []);
  const outcome = await store.create({
    uuid, accountId, columns, settings, assistantsMax: ASSISTANTS_PER_ACCOUNT_MAX, now,
  });
  switch (outcome.kind) {
    case "created":
      return {
        ...columns, id: outcome.assistantId, uuid, accountId, settings,
        createdAt: now, updatedAt: now, deletedAt: null,
      };
    case "too_many":
      throw new Fault(
        422, `You have reached the limit of ${ASSISTANTS_PER_ACCOUNT_MAX} assistants.`);
    default:
      throw refusedFault(outcome);
  }
}

/** The columns and settings after a change; throws naming every invalid field. */
async function changed(
  options: Judged, current: Assistant, given: Given, schemaErrors: FieldErrors,
): Promise<{ columns: AssistantColumns; settings: AssistantSettings }> {
  const before = profileOf(current);
  const reset = given.mode !== undefined && given.mode !== before.mode
    ? modeDefaults(given.mode, before, options.references)
    : {};
  const next = { ...before, ...reset, ...normalized(given) };
  const profile = await judge(options, current, next, given, schemaErrors);
  const settings = given.tools === undefined
    ? settingsOf(profile)
    : keptSettings(options, current, profile, before.tools);
  return { columns: columnsOf(profile), settings };
}

/** Validates and writes against the row it read; retries when the row has changed meanwhile. */
async function changeAssistant(
  options: Judged,
  accountId: number,
  assistantId: number,
  given: Given,
  schemaErrors: FieldErrors = {},
): Promise<Assistant> {
  const { store, system } = options;
  return changing("assistant", async () => {
    const current = assertFound(await store.find(accountId, assistantId));
    const { columns, settings } = await changed(options, current, given, schemaErrors);
    const outcome = await store.update({
      accountId, assistantId, columns, settings,
      expectedUpdatedAt: current.updatedAt, now: system.now(),
    });
    switch (outcome.kind) {
      case "updated":
        return { ...current, ...columns, settings, updatedAt: outcome.updatedAt };
      case "changed":
        return null;
      case "not_found":
        throw assistantNotFound();
      default:
        throw refusedFault(outcome);
    }
  });
}

function webhookChange(kind: WebhookKind, url: string | null): Given {
  switch (kind) {
    case "post_call":
      return { is_webhook_active: url !== null, webhook_url: url };
    case "inbound":
      return { inbound_webhook_url: url };
    case "conversation_ended":
      return { conversation_ended_webhook_url: url };
  }
}

async function assignableNumbers(
  { store, phoneNumbers }: AssistantOptions,
  accountId: number,
  type: AssistantType | null,
): Promise<AssignableNumber[]> {
  const owned = await phoneNumbers.list(accountId);
  const numbers = await Promise.all(owned.map(async (number) => ({
    ...number,
    isAvailable: takesInboundCalls(number.type)
      && await store.inboundAssistantOn(accountId, number.id) === null,
  })));
  return type === "inbound" ? numbers.filter(({ isAvailable }) => isAvailable) : numbers;
}
