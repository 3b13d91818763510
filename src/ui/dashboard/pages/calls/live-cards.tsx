// Live calls as cards: who talks with which assistant, for how long, and what was said last.
import { useFreshness } from "#ui/dashboard/data/live.tsx";
import { duration, timeOfDay } from "#ui/dashboard/kit/format.ts";
import { Card, Failure, Notice, Skeleton, Status } from "#ui/dashboard/kit/layout.tsx";
import { usePhone } from "#ui/dashboard/later.tsx";
import { customerOf, speakerOf, typeWords } from "./call-state.ts";
import { useLiveCalls, type LiveCall } from "./live-calls.ts";
import { useNow } from "#ui/dashboard/data/use-now.ts";

/** With more cards there would be no overview. */
const CARDS_MAX = 60;

export function LiveCards() {
  const { calls, error, reload } = useLiveCalls();
  const { isLive, lostAt } = useFreshness();
  const now = useNow(isLive && Boolean(calls?.length));
  const count = calls?.length ?? 0;
  return (
    <Card title={count > 0 ? `Live now: ${count}` : "Live now"}>
      {Boolean(error) && <Failure error={error} retry={reload} />}
      {!calls && !error && <Skeleton lines={2} />}
      {!isLive && lostAt && count > 0 && (
        <Notice tone="warn">As of {timeOfDay(lostAt)}. Updates resume when the connection is back.</Notice>
      )}
      {calls?.length === 0 && <p class="soft">No call is live. New ones appear here by themselves.</p>}
      {count > 0 && (
        <ul class={`calls-cards ${isLive ? "" : "stale"}`} aria-label="Live calls">
          {calls?.slice(0, CARDS_MAX).map((live) => (
            <li key={live.call.id}><LiveCard live={live} now={now} /></li>
          ))}
        </ul>
      )}
      {count > CARDS_MAX && <p class="soft">And {count - CARDS_MAX} more: filter the list by status.</p>}
    </Card>
  );
}

function LiveCard({ live: { call, answeredAt, saying }, now }: { live: LiveCall; now: number }) {
  const phone = usePhone();
  const last = saying ?? call.transcript.findLast(({ text }) => text !== "");
  return (
    <a class="calls-card" href={`#/calls/${call.id}`}>
      <span class="calls-card-top">
        <strong>{phone(customerOf(call))}</strong>
        <Status code={call.status} />
      </span>
      <span class="calls-card-top">
        <small>{call.assistant_name}</small>
        <time class="calls-clock">
          {answeredAt === null ? typeWords(call.type) : duration((now - answeredAt) / 1000)}
        </time>
      </span>
      <span class="calls-line">
        {last ? <><b>{speakerOf(last.sender)}:</b> {last.text}</> : "Nothing said yet"}
      </span>
    </a>
  );
}
