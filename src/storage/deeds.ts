// Audit entries written with the deed itself: the command that an audited request runs writes the
// entry in its own transaction, with the values before and after. Writers attach the deed
// (`notingDeeds`), commands record it (`withDeeds`).
import { deedUnderWay, type DeedNote } from "#core/deed.ts";
import { createNoteAudit, nameShown } from "./accounts/audit-log.ts";
import type { AllCommands } from "./commands.ts";
import { lockOf } from "./locks.ts";
import type { Sql } from "./sql.ts";
import type { ArgsOf, ResultOf, Writer } from "./writer.ts";

/** The object the deed was done to; `true`: no particular object. Null: the deed was not done. */
type Object = number | string | true | null;
type Deeds = {
  [Name in keyof AllCommands]?: (
    result: ResultOf<AllCommands, Name>, args: ArgsOf<AllCommands, Name>,
  ) => Object;
};

const byId = (result: { id: number } | null): Object => result?.id ?? null;
const ofConversation = (result: unknown, { uuid }: { uuid: string }): Object =>
  (result === null ? null : uuid);
const ofCampaign = (result: object | null, { campaignId }: { campaignId: number }): Object =>
  (result === null ? null : campaignId);

/** The commands that carry out audited routes, other than those that write their own entry. */
const DEEDS: Deeds = {
  "accounts.setTimeZone": () => true,
  "assistants.create": (made) => (made.kind === "created" ? made.assistantId : null),
  "assistants.update": ({ kind }, args) => (kind === "updated" ? args.assistantId : null),
  "assistants.remove": (done, args) => (done ? args.assistantId : null),
  "folders.create": (made) => (made.kind === "saved" ? made.group.id : null),
  "folders.update": ({ kind }, args) => (kind === "saved" ? args.groupId : null),
  "folders.remove": (done, args) => (done?.isGone ? args.groupId : null),
  "labels.create": (made) => (made.kind === "saved" ? made.group.id : null),
  "labels.update": ({ kind }, args) => (kind === "saved" ? args.groupId : null),
  "labels.remove": (done, args) => (done?.isGone ? args.groupId : null),
  "tools.create": byId,
  "tools.update": (done, { id }) => (done === "updated" ? id : null),
  "tools.remove": (done, args) => (done ? args.toolId : null),
  "knowledgebases.create": byId,
  "knowledgebases.update": (done, args) => (done ? args.knowledgebaseId : null),
  "knowledgebases.remove": (done, args) => (done?.isGone ? args.knowledgebaseId : null),
  "documents.create": (made) => (made.kind === "created" ? made.document.id : null),
  "documents.update": (saved) => (saved.kind === "saved" ? saved.document.id : null),
  "documents.readAgain": (saved) => (saved.kind === "saved" ? saved.document.id : null),
  "documents.remove": (done, args) => (done?.isGone ? args.documentId : null),
  "calendars.save": (_, args) => args.assistantId,
  "calendars.book": byId,
  "calendars.cancel": (done, args) => (done ? args.appointmentId : null),
  "desk.move": ({ kind }, { uuid }) => (kind === "moved" ? uuid : null),
  "desk.end": ofConversation,
  "desk.note": ofConversation,
  "desk.label": (done, { uuid }) => (done === "labelled" ? uuid : null),
  "callbacks.finish": ofConversation,
  "cannedReplies.save": (saved) => (saved.kind === "saved" ? saved.reply.id : null),
  "cannedReplies.remove": (done, { id }) => (done ? id : null),
  "calls.create": (made) => (made.kind === "created" ? made.call.id : null),
  "calls.moveDesk": ({ kind }, { callId }) => (kind === "moved" ? callId : null),
  "calls.whisper": (events, { callId }) => (events === null ? null : callId),
  "calls.delete": ({ kind }, { callId }) => (kind === "deleted" ? callId : null),
  "leads.add": (added) => {
    if (added.kind !== "added") return null;
    return added.ids.length === 1 ? added.ids[0] ?? null : true;
  },
  "leads.update": ({ kind }, { leadId }) => (kind === "updated" ? leadId : null),
  "leads.remove": ({ kind }, { leadId }) => (kind === "removed" ? leadId : null),
  "leads.block": (done, { phoneNumber }) => (done === null ? null : phoneNumber),
  "leads.unblock": (done, { phoneNumber }) => (done ? phoneNumber : null),
  "campaigns.create": byId,
  "campaigns.update": ofCampaign,
  "campaigns.start": ({ kind }, args) => (kind === "started" ? args.campaignId : null),
  "campaigns.stop": ofCampaign,
  "campaigns.remove": (done, { campaignId }) => (done?.isGone ? campaignId : null),
  "campaigns.retry": (done, { campaignId }) => (done.length > 0 ? campaignId : null),
  "firstSteps.dismiss": () => true,
  "phoneNumbers.order": ({ kind }, args) => (kind === "ordered" ? args.phoneNumber : null),
  "phoneNumbers.rename": (done, args) => (done ? args.phoneNumberId : null),
  "phoneNumbers.release": ({ kind }, args) =>
    (kind === "scheduled" || kind === "removed" ? args.phoneNumberId : null),
  "sipTrunks.create": (made) => (made.kind === "created" ? made.trunk.id : null),
  "sipTrunks.update": (done, { id }) => (done === "updated" ? id : null),
  "webhooks.createEndpoint": byId,
  "webhooks.updateEndpoint": byId,
  "webhooks.deleteEndpoint": (done, args) => (done?.isGone ? args.endpointId : null),
  "webhooks.replay": (done, args) => (done === null ? null : args.deliveryId),
  "webhooks.enqueue": (done, args) => (done === null ? null : args.endpointId),
};

/** Objects that a request names in its body, so that their state before the deed is recorded. */
const NAMED: Record<string, (args: Record<string, unknown>) => unknown> = {
  "campaign.set_status": ({ campaignId }) => campaignId,
};

type Rule = (result: unknown, args: unknown) => Object;
const ruleOf = (name: string): Rule | undefined => (DEEDS as Record<string, Rule>)[name];

/**
 * Small records, whose values before and after are logged. No column that may hold a key, a
 * password or somebody's words is listed here: for those the log has the names of fields only.
 */
const SHOWN: Record<string, { table: string; columns: string }> = {
  assistant: {
    table: "assistants",
    columns: "name, type, status, mode, folder_id, phone_number_id, knowledgebase_id",
  },
  folder: { table: "folders", columns: "name, color" },
  label: { table: "labels", columns: "name, color" },
  tool: { table: "tools", columns: "name, method, timeout_s" },
  knowledgebase: { table: "knowledgebases", columns: "name" },
  document: { table: "documents", columns: "name, type, reread_hours, ignore_robots" },
  canned_reply: { table: "canned_replies", columns: "shortcut" },
  lead: { table: "leads", columns: "phone_number, status, campaign_id" },
  campaign: {
    table: "campaigns",
    columns: "name, status, timezone, max_calls_in_parallel, max_retries, assistant_id",
  },
  phone_number: { table: "phone_numbers", columns: "phone_number, nickname, status" },
  webhook: { table: "webhook_endpoints", columns: "url AS name, status" },
};

type Row = Record<string, unknown>;

/** The columns that changed; empty where the object has no small record. */
function differing(before: Row | undefined, after: Row | undefined): Record<string, Row> {
  const columns = Object.keys(before ?? after ?? {})
    .filter((column) => before?.[column] !== after?.[column]);
  if (columns.length === 0) return {};
  const pick = (row: Row): Row => Object.fromEntries(columns.map((name) => [name, row[name]]));
  return { ...before && { before: pick(before) }, ...after && { after: pick(after) } };
}

type Command = (args: never) => Promise<unknown>;

export function withDeeds<Commands extends object>(sql: Sql, commands: Commands): Commands {
  const noteAudit = createNoteAudit(sql);
  const records = new Map(Object.entries(SHOWN).map(([type, { table, columns }]) =>
    [type, sql.prepare<object, Row>(
      `SELECT ${columns} FROM ${table} WHERE id = @id AND account_id = @accountId`)]));
  const recordOf = async (type: string, accountId: number, id: Object | undefined) => {
    const found = Number(id);
    if (!Number.isSafeInteger(found) || found <= 0) return undefined;
    const row = await records.get(type)?.get({ id: found, accountId });
    return row && typeof row.name === "string"
      ? { ...row, name: nameShown(type, row.name) } : row;
  };
  const noted = (rule: Rule, command: Command): Command => async (args: { deed?: DeedNote }) => {
    const { deed } = args;
    if (!deed) return command(args as never);
    const { accountId, action, actor, address, objectId, fields, now } = deed;
    const type = action.split(".")[0] ?? action;
    const named = objectId ?? String(NAMED[action]?.(args as Record<string, unknown>) ?? "");
    const before = named === "" ? undefined : await recordOf(type, accountId, named);
    const result = await command(args as never);
    const object = rule(result, args);
    if (object === null) return result;
    const id = object === true ? objectId : String(object);
    const after = id === null ? undefined : await recordOf(type, accountId, id);
    await noteAudit({
      accountId, now,
      note: {
        actor, action, address, object: { type, id },
        details: { ...fields.length > 0 && { fields }, ...differing(before, after) },
      },
    });
    return result;
  };
  return Object.fromEntries(Object.entries(commands as Record<string, Command>)
    .map(([name, command]) => {
      const rule = ruleOf(name);
      return [name, rule ? noted(rule, command) : command];
    })) as Commands;
}

/** Attaches the request's deed to the first command that carries it out. */
export function notingDeeds(writer: Writer<AllCommands>): Writer<AllCommands> {
  const write: typeof writer.write = (name, args) => {
    const deed = deedUnderWay();
    const rule = ruleOf(name);
    if (deed?.state !== "open" || !rule) return writer.write(name, args);
    const lock = lockOf(name, args);
    if ("account" in lock && lock.account !== deed.note.accountId) return writer.write(name, args);
    deed.state = "writing";
    const settle = (isDone: boolean): void => {
      if (deed.state === "writing") deed.state = isDone ? "noted" : "open";
    };
    const written = writer.write(name, { ...args, deed: deed.note });
    written.then((result) => settle(rule(result, args) !== null), () => settle(false));
    return written;
  };
  return { ...writer, write };
}
