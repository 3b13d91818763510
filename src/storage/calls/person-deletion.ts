// Finds all data about one person, and deletes it through the commands that delete single records.
import type { PersonCounts, PersonStore } from "#features/calls/records/person-data.ts";
import { isE164 } from "#core/values.ts";
import { createNoteAudit } from "#storage/accounts/audit-log.ts";
import type { keptAnswerCommands } from "#storage/accounts/kept-answers.ts";
import type { callCommands } from "./commands.ts";
import type { bulkCommands } from "#storage/conversations/deletion.ts";
import type { leadCommands } from "#storage/leads/commands.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import type { Writer } from "#storage/writer.ts";

type DeleteArgs = Parameters<PersonStore["delete"]>[0];
type Commands = Pick<ReturnType<typeof callCommands>, "calls.deleteMany">
  & Pick<ReturnType<typeof bulkCommands>, "conversations.delete">
  & Pick<ReturnType<typeof leadCommands>, "leads.remove">;

interface Known {
  uuid: string;
  assistant_id: number;
  visitor_id: string | null;
  external_identifier: string | null;
}

export function createPersonStore(
  reader: Reader,
  writer: Writer<ReturnType<typeof personCommands> & ReturnType<typeof keptAnswerCommands>>,
): PersonStore {
  const conversation = reader.prepare<object, Known>(`
    SELECT uuid, assistant_id, visitor_id, external_identifier FROM conversations
    WHERE uuid = @uuid AND account_id = @accountId`);
  const ofVisitor = reader.prepare<object, { uuid: string }>(`
    SELECT uuid FROM conversations WHERE account_id = @accountId
      AND assistant_id = @assistantId AND visitor_id = @visitorId`);
  const ofNumber = reader.prepare<object, { uuid: string }>(`
    SELECT uuid FROM conversations WHERE +account_id = @accountId
      AND assistant_id IN (SELECT id FROM assistants WHERE account_id = @accountId)
      AND external_identifier = @phoneNumber`);
  const leads = reader.prepare<object, { id: number }>(`
    SELECT DISTINCT coalesce(main_id, id) AS id FROM leads
    WHERE account_id = @accountId AND phone_number = @phoneNumber`);
  const callsOfNumber = reader.prepare<object, { id: number }>(
    "SELECT id FROM calls WHERE account_id = @accountId AND customer_phone = @phoneNumber");
  const callsOfConversation = reader.prepare<object, { id: number }>(
    "SELECT id FROM calls WHERE account_id = @accountId AND conversation_uuid = @uuid");
  const callsOfLead = reader.prepare<object, { id: number }>(`
    SELECT id FROM calls
    WHERE lead_id IN (SELECT id FROM leads WHERE id = @leadId OR main_id = @leadId)`);

  const namesOf = async (accountId: number, uuid: string) => {
    const known = await conversation.get({ accountId, uuid });
    if (!known) return null;
    const { assistant_id: assistantId, visitor_id: visitorId, external_identifier: id } = known;
    const others = visitorId === null
      ? []
      : await ofVisitor.all({ accountId, assistantId, visitorId });
    return {
      uuids: [uuid, ...others.map((other) => other.uuid)],
      phoneNumber: id !== null && isE164(id) ? id : null,
    };
  };
  return {
    find: async (accountId, person) => {
      const names = "phoneNumber" in person
        ? { uuids: [], phoneNumber: person.phoneNumber }
        : await namesOf(accountId, person.conversationId);
      if (!names) return null;
      const uuids = new Set<string>(names.uuids);
      const callIds = new Set<number>();
      const leadIds: number[] = [];
      const { phoneNumber } = names;
      const add = (rows: { id: number }[]): void => rows.forEach(({ id }) => callIds.add(id));
      if (phoneNumber !== null) {
        for (const { uuid } of await ofNumber.all({ accountId, phoneNumber })) uuids.add(uuid);
        leadIds.push(...(await leads.all({ accountId, phoneNumber })).map(({ id }) => id));
        add(await callsOfNumber.all({ accountId, phoneNumber }));
      }
      for (const uuid of uuids) add(await callsOfConversation.all({ accountId, uuid }));
      for (const leadId of leadIds) add(await callsOfLead.all({ leadId }));
      const named = "conversationId" in person ? person.conversationId : null;
      if (named !== null) uuids.delete(named);
      return { conversations: [...uuids], named, calls: [...callIds], leads: leadIds };
    },
    forgetAnswers: (accountId, rows) =>
      writer.write("keptAnswers.trim", { accountId, before: Number.MAX_SAFE_INTEGER, rows }),
    delete: (args) => writer.write("personData.delete", args),
  };
}

export function personCommands(sql: Sql, commands: Commands) {
  const note = createNoteAudit(sql);
  const forgetAnswers = sql.prepare("DELETE FROM kept_answers WHERE account_id = @accountId");
  return {
    "personData.delete": async (
      args: DeleteArgs,
    ): Promise<Awaited<ReturnType<PersonStore["delete"]>>> => {
      const { accountId, named, by, now } = args;
      const calls = await commands["calls.deleteMany"]({
        accountId, callIds: args.calls, by, now,
      });
      const talks = await commands["conversations.delete"]({
        accountId, uuids: args.conversations, by, now,
      });
      const deleted: PersonCounts = {
        conversations: talks.deleted.length, calls: calls.deleted.length, leads: 0,
        busy: talks.busy.length + calls.live.length,
      };
      const events = [...calls.events, ...talks.events];
      for (const leadId of args.leads) {
        const gone = await commands["leads.remove"]({ accountId, leadId, now });
        if (gone.kind === "removed") events.push(...gone.events);
        if (gone.kind === "removed") deleted.leads += 1;
        if (gone.kind === "processing") deleted.busy += 1;
      }
      if (named !== null && args.busyBefore + deleted.busy > 0) deleted.busy += 1;
      else if (named !== null) {
        const last = await commands["conversations.delete"]({ accountId, uuids: [named], by, now });
        deleted.conversations += last.deleted.length;
        deleted.busy += last.busy.length;
        events.push(...last.events);
      }
      await forgetAnswers.run({ accountId });
      // The note leaves out whose data it was: that is what was to be forgotten.
      await note({
        accountId, now,
        note: {
          ...by, action: "person.delete", object: { type: "person", id: null },
          details: { ...deleted },
        },
      });
      return { deleted, recordings: calls.recordings, events };
    },
  };
}
