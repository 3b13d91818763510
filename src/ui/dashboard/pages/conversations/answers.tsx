// What the owner alone is told of a conversation's answers: the tokens the model counted, and why
// replies failed, in full.
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { count, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Notice } from "#ui/dashboard/kit/layout.tsx";

/** Others' conversations change by the same events. */
const GATHER_MS = 2000;

export function Answers({ uuid }: { uuid: string }) {
  const api = useApi();
  const { value } = useData(`conversations/${uuid}/answers`, () =>
    unwrap(api.GET("/user/conversations/{uuid}/messages", { params: { path: { uuid } } })),
  ["message_added", "reply_failed"], { gatherMs: GATHER_MS });
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
