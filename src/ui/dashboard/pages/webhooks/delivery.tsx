// One delivery: what was sent, what came back, and sending it once more.
import { useEffect } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { PageProps } from "#ui/dashboard/page.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { instant, pretty, when, whenExactly, words } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Loaded, Notice, Page } from "#ui/dashboard/kit/layout.tsx";
import { Outcome } from "./delivery-table.tsx";
import { shortUrl, type Delivery } from "./webhooks-data.ts";
import "./webhooks.css";

const BACK = { href: "#/webhooks/deliveries", label: "Deliveries" };

/** No event announces the outcome: reloads once, this long after the next attempt was due. */
const AFTER_DUE_MS = 1000;
const TIMER_MAX_MS = 2 ** 31 - 1;

function useReloadWhenDue(nextAttemptAt: string | null, reload: () => void): void {
  useEffect(() => {
    if (nextAttemptAt === null) return;
    const wait = Math.max(0, instant(nextAttemptAt).getTime() - Date.now()) + AFTER_DUE_MS;
    const timer = setTimeout(reload, Math.min(wait, TIMER_MAX_MS));
    return () => clearTimeout(timer);
  }, [nextAttemptAt, reload]);
}

export function DeliveryPage({ params }: PageProps) {
  const api = useApi();
  const id = Number(params.id);
  const data = useData(`webhook delivery ${id}`, async () =>
    (await unwrap(api.GET("/user/webhook-deliveries/{id}", { params: { path: { id } } }))).data);
  useFocusReload(data.reload);
  const delivery = data.value?.id === id ? data.value : null;
  useReloadWhenDue(delivery?.next_attempt_at ?? null, data.reload);
  return (
    <Page
      title={delivery ? `Delivery ${id}: ${words(delivery.type)}` : `Delivery ${id}`} back={BACK}
      actions={delivery && <Actions delivery={delivery} reload={data.reload} />}
    >
      <Loaded data={{ ...data, value: delivery }}>{(shown) => <Shown delivery={shown} />}</Loaded>
    </Page>
  );
}

function Actions({ delivery, reload }: { delivery: Delivery; reload(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const [, navigate] = useLocation();
  const { isBusy, run } = useToastedWork();
  const replay = async (): Promise<void> => {
    const { data } = await unwrap(api.POST("/user/webhook-deliveries/{id}/replay", {
      params: { path: { id: delivery.id } },
    }));
    toasts.notify(`Sent again as delivery ${data.id}`);
    navigate(`/webhooks/deliveries/${data.id}`);
  };
  return (
    <>
      <Button icon="again" onClick={reload}>Refresh</Button>
      <Button kind="main" needs="build" icon="play" isBusy={isBusy} onClick={() => run(replay)}>Replay</Button>
    </>
  );
}

const About = ({ delivery: { call_id: call, conversation_id: talk } }: { delivery: Delivery }) =>
  call !== null
    ? <a href={`#/calls/${call}`}>Call {call}</a>
    : talk !== null ? <a href={`#/conversations/${talk}`}>A conversation</a> : <>–</>;

const time = (at: string | null) => at && <time title={whenExactly(at)}>{when(at)}</time>;

function Shown({ delivery }: { delivery: Delivery }) {
  const { replay_of: replayOf, last_error: error, last_status: status, response } = delivery;
  return (
    <>
      <Card>
        <Facts
          rows={[
            ["State", <Outcome delivery={delivery} />],
            ["Sent to", <a href={`#/webhooks/endpoints/${delivery.endpoint_id}`}>{shortUrl(delivery.url)}</a>],
            ["Attempts", delivery.attempts],
            ["Last status", status === null ? null : `HTTP ${status}`],
            ["Created", time(delivery.created_at)],
            delivery.next_attempt_at === null
              ? ["Finished", time(delivery.finished_at)]
              : ["Next attempt", time(delivery.next_attempt_at)],
            ["About", <About delivery={delivery} />],
            ["Message", <code>{delivery.message_id}</code>],
            ...(replayOf === null ? [] : [["Replay of",
              <a href={`#/webhooks/deliveries/${replayOf}`}>Delivery {replayOf}</a>] as [string, preact.ComponentChildren]]),
          ]}
        />
      </Card>
      {error !== null && (
        <Notice tone={delivery.state === "dead" ? "bad" : "warn"}>Last attempt: {error}</Notice>
      )}
      <div class="grid two">
        <Card title="Sent">
          <pre class="webhooks-body" tabIndex={0} role="group" aria-label="Request body">
            {JSON.stringify(delivery.payload, null, 2)}
          </pre>
        </Card>
        <Card title="Answer">
          {response
            ? <pre class="webhooks-body" tabIndex={0} role="group" aria-label="Response body">{pretty(response)}</pre>
            : <p class="soft">{delivery.attempts === 0 ? "It has not been sent yet." : "The answer had no body."}</p>}
        </Card>
      </div>
    </>
  );
}
