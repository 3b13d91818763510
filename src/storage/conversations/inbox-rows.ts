// What inbox rows show beside the conversation: labels, the open callback. Used by inbox.ts.
import type { Callback } from "#features/conversations/desk/callbacks.ts";
import type { InboxLabel } from "#features/conversations/desk/inbox.ts";
import { CALLBACK, callbackFromRow, type CallbackRow } from "./callbacks.ts";
import type { Reader } from "#storage/sql.ts";

export interface Beside {
  labels: InboxLabel[];
  callback: Callback | null;
}

type LabelRow = InboxLabel & { conversation_id: number };

/** Reads both for all conversations of the page, in two queries. */
export function createBeside(
  reader: Reader,
): (ids: number[]) => Promise<(conversationId: number) => Beside> {
  const labels = reader.prepare<object, LabelRow>(`
    SELECT cl.conversation_id, l.id, l.name, l.color
    FROM conversation_labels cl JOIN labels l ON l.id = cl.label_id
    WHERE ${reader.dialect.among("cl.conversation_id", "@ids")} ORDER BY l.name, l.id`);
  const callbacks = reader.prepare<object, CallbackRow & { conversation_id: number }>(`
    SELECT conversation_id, ${CALLBACK} FROM callbacks
    WHERE ${reader.dialect.among("conversation_id", "@ids")} AND done_at IS NULL`);
  return async (ids) => {
    if (ids.length === 0) return () => ({ labels: [], callback: null });
    const [labelRows, callbackRows] =
      await Promise.all([labels.all({ ids }), callbacks.all({ ids })]);
    const labelsOf = Map.groupBy(labelRows, (row) => row.conversation_id);
    const callbackOf = new Map(callbackRows.map((row) => [row.conversation_id, row]));
    return (conversationId) => {
      const callback = callbackOf.get(conversationId);
      return {
        labels: (labelsOf.get(conversationId) ?? []).map(({ id, name, color }) =>
          ({ id, name, color })),
        callback: callback ? callbackFromRow(callback) : null,
      };
    };
  };
}
