// The current calls in short; the page of calls has all of them, with what is being said.
import { useFreshness } from "#ui/dashboard/data/live.tsx";
import { duration } from "#ui/dashboard/kit/format.ts";
import { Card, Failure, Skeleton, Status } from "#ui/dashboard/kit/layout.tsx";
import { usePhone } from "#ui/dashboard/later.tsx";
import { customerOf } from "#ui/dashboard/pages/calls/call-state.ts";
import { useLiveCalls } from "#ui/dashboard/pages/calls/live-calls.ts";
import { useNow } from "#ui/dashboard/data/use-now.ts";

const ROWS_MAX = 6;

export function LiveNow() {
  const { calls, error, reload } = useLiveCalls();
  const { isLive } = useFreshness();
  const phone = usePhone();
  const now = useNow(isLive && Boolean(calls?.length));
  const more = (calls?.length ?? 0) - ROWS_MAX;
  return (
    <Card class="overview-live" title="Live now" actions={<a href="#/calls">All calls</a>}>
      {Boolean(error) && <Failure error={error} retry={reload} />}
      {!calls && !error && <Skeleton lines={2} />}
      {calls?.length === 0 && <p class="soft">Nobody is on a call.</p>}
      {calls && calls.length > 0 && (
        <ul class="overview-list" aria-label="Live calls">
          {calls.slice(0, ROWS_MAX).map(({ call, answeredAt }) => (
            <li key={call.id}>
              <a href={`#/calls/${call.id}`}>
                <strong>{phone(customerOf(call))}</strong>
                <small>{call.assistant_name}</small>
              </a>
              {answeredAt === null
                ? <Status code={call.status} />
                : <time class="overview-clock">{duration((now - answeredAt) / 1000)}</time>}
            </li>
          ))}
        </ul>
      )}
      {more > 0 && <p class="soft">And {more} more.</p>}
    </Card>
  );
}
