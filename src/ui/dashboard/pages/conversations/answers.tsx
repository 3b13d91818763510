// Facts about a conversation's answers that only the owner sees: the tokens of each reply and in
// total, and the full reasons why replies failed.
import type { paths } from "#client/client.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { count, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Notice } from "#ui/dashboard/kit/layout.tsx";
import { isStored, type Item } from "./talk.ts";

/** Other conversations' events reload this, too. */
const GATHER_MS = 2000;

type Answered =
  paths["/user/conversations/{uuid}/messages"]["get"]["responses"][200]["content"]["application/json"];
export type Usage = NonNullable<Answered["data"][number]["usage"]>;

export function useRecord(uuid: string): Answered | null {
  const api = useApi();
  const { value } = useData(`conversations/${uuid}/answers`, () =>
    unwrap(api.GET("/user/conversations/{uuid}/messages", { params: { path: { uuid } } })),
  ["message_added", "reply_failed"], { gatherMs: GATHER_MS });
  return value;
}

/** The usage of each item: the record has the stored messages in the same order. */
export function usagesOf(items: readonly Item[], record: Answered | null): (Usage | null)[] {
  let stored = 0;
  return items.map((item) => {
    if (!isStored(item)) return null;
    const message = record?.data[stored];
    stored += 1;
    return message?.content === item.text ? message.usage : null;
  });
}

export function Answers({ record: value }: { record: Answered | null }) {
  const counted = value?.data.flatMap(({ usage }) => usage ?? []) ?? [];
  if (!value || (counted.length === 0 && value.failures.length === 0)) return null;
  const sum = (of: "input_tokens" | "output_tokens"): string =>
    count(counted.reduce((total, usage) => total + usage[of], 0));
  return (
    <Card title="Answers">
      {counted.length > 0 && (
        <Facts rows={[
          ["Replies counted", count(counted.length)], ["Tokens read", sum("input_tokens")],
          ["Tokens written", sum("output_tokens")],
        ]} />
      )}
      {value.failures.map(({ turn_id: turn, error, failed_at: at }) => (
        <Notice key={turn} tone="warn">
          <span>Not answered, {whenExactly(at)}: {error}</span>
        </Notice>
      ))}
    </Card>
  );
}
