// Every metric's name and meaning. Values are observed in app/; nothing here holds customer data.
// prom-client's files one by one: its index also loads the push gateway and the cluster support.
import Counter from "prom-client/lib/counter.js";
import collectDefaultMetrics from "prom-client/lib/defaultMetrics.js";
import Gauge from "prom-client/lib/gauge.js";
import Histogram from "prom-client/lib/histogram.js";
import Registry from "prom-client/lib/registry.js";
import { LIMITS } from "./limits.ts";
import { wait, type System } from "./system.ts";

const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

/** Gauges that the library names like counters; the same figures by type have other names. */
const MISNAMED = ["handles", "requests", "resources"]
  .map((what) => `parley_nodejs_active_${what}_total`);

interface Gauges {
  sseStreams(): number;
  websockets(): number;
  turnsInFlight(): number;
  callsLive(): number;
  storageFailed(): boolean;
  /** Nodes that serve the database, this one included. */
  nodes(): number;
  nodesDraining(): number;
  hasClock(): boolean;
  /** How long this node's lease on what it owns still lasts. */
  holdsForSeconds(): number;
  waiting(): Promise<{ documents: number; deliveries: number }>;
}

function requestMetrics(registers: Registry[]) {
  return {
    request: new Histogram({
      name: "parley_http_request_duration_seconds",
      help: "Time a request's handler took to produce its response",
      labelNames: ["method", "route"] as const,
      buckets: SECONDS,
      registers,
    }),
    requests: new Counter({
      name: "parley_http_requests_total",
      help: "Requests by status class; unauthenticated ones have no route",
      labelNames: ["method", "route", "status"] as const,
      registers,
    }),
  };
}

/** Replies in calls that were begun ahead of their time. */
function eagerMetrics(registers: Registry[]) {
  const replies = new Counter({
    name: "parley_eager_replies_total",
    help: "Replies in calls begun before the caller's turn ended, spoken or dropped unheard",
    labelNames: ["outcome"] as const,
    registers,
  });
  const dropped = new Counter({
    name: "parley_eager_tokens_dropped_total",
    help: "Model tokens spent on replies that were dropped unheard",
    registers,
  });
  return (outcome: "heard" | "dropped", tokens: number): void => {
    replies.inc({ outcome });
    dropped.inc(tokens);
  };
}

/** Work that waits for any node; the last known figures while the database cannot be read. */
function showWaiting(registers: Registry[], { waiting }: Gauges): void {
  new Gauge({
    name: "parley_waiting", help: "Documents and webhooks waiting to be processed by any node",
    labelNames: ["what"] as const, registers,
    async collect() {
      const known = await waiting().catch(() => null);
      if (!known) return;
      this.set({ what: "documents" }, known.documents);
      this.set({ what: "webhooks" }, known.deliveries);
    },
  });
}

function showGauges(registers: Registry[], gauges: Gauges): void {
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({ name: `parley_${name}`, help, registers, collect() { this.set(read()); } });
  };
  gauge("sse_streams", "Open server-sent event streams", gauges.sseStreams);
  gauge("ws_connections", "Open WebSocket streams", gauges.websockets);
  gauge("turns_in_flight", "Replies being written", gauges.turnsInFlight);
  gauge("calls_live", "Calls from dialling to the end", gauges.callsLive);
  gauge("storage_failed", "1 after a failed commit and while the disk is full", () =>
    gauges.storageFailed() ? 1 : 0);
  gauge("nodes", "Nodes serving the database, as seen by this node", gauges.nodes);
  gauge("nodes_draining", "Nodes accepting no new work, as seen by this node",
    gauges.nodesDraining);
  gauge("lease_seconds", "Time until this node's lease on its work expires",
    gauges.holdsForSeconds);
  showWaiting(registers, gauges);
  gauge("lease_clock", "1 if this node runs the periodic work", () =>
    gauges.hasClock() ? 1 : 0);
}

/**
 * Begun at the first read: the event loop is monitored by a tick every 10 ms, which was all that an
 * idle server did, a hundredth of a core. Resolves once there is something to read.
 */
function watchProcess(registry: Registry, system: System): Promise<void> {
  collectDefaultMetrics({ register: registry, prefix: "parley_" });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return wait(system, LIMITS.loopSeenMs);
}

export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  let watching: Promise<void> | null = null;
  let text: Promise<string> | null = null;
  return {
    registry,
    /** Registers the gauges that are read from the features at each scrape; called once. */
    showGauges: (gauges: Gauges): void => showGauges(registers, gauges),
    /** At most a second old, so that many readers cost as much as one. */
    read: (system: System): Promise<string> => {
      if (text) return text;
      system.after(LIMITS.metricsKeptMs, () => (text = null));
      watching ??= watchProcess(registry, system);
      return (text = watching.then(() => registry.metrics()));
    },
    ...requestMetrics(registers),
    turn: new Histogram({
      name: "parley_turn_duration_seconds",
      help: "Time from a stored message to its stored reply",
      labelNames: ["outcome"] as const,
      buckets: SECONDS,
      registers,
    }),
    firstText: new Histogram({
      name: "parley_turn_first_text_seconds",
      help: "Time from a stored message to the first text of its reply",
      buckets: SECONDS,
      registers,
    }),
    toolCall: new Histogram({
      name: "parley_tool_call_duration_seconds",
      help: "Time until a tool's endpoint answered or the call was given up",
      labelNames: ["outcome"] as const,
      buckets: SECONDS,
      registers,
    }),
    playout: new Histogram({
      name: "parley_web_call_playout_seconds",
      help: "Time until the page of a web call has played the audio sent to it",
      buckets: SECONDS,
      registers,
    }),
    mediaClockLate: new Histogram({
      name: "parley_media_clock_late_seconds",
      help: "Delay of the media clock's 20 ms ticks",
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1],
      registers,
    }),
    webhook: new Histogram({
      name: "parley_webhook_attempt_duration_seconds",
      help: "Time until a webhook's receiver answered or the attempt was given up",
      labelNames: ["outcome"] as const,
      buckets: SECONDS,
      registers,
    }),
    observeEager: eagerMetrics(registers),
    messagesBilled: new Counter({
      name: "parley_messages_billed_total", help: "User messages answered and stored", registers,
    }),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
