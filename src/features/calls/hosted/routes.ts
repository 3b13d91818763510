// The routes of a hosted carrier: it asks here what to do with an inbound call, reports on calls,
// and opens the WebSocket of their sound. Each needs the carrier's signature (a socket only if it
// signs sockets) over the address below PARLEY_PUBLIC_URL, or this node's own.
import { Fault } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { isUuid } from "#core/values.ts";
import type { HttpRequest, HttpRoute, Reply, SocketRoute } from "#http/exchange.ts";
import type { CallReport, CarrierRequest, WebhookReply } from "#providers/carriers/hosted/port.ts";
import type { Calling } from "#features/calls/calling.ts";
import { hostedPaths, NO_REPLY, socketUrlOf, type Hosted, type Receive } from "./hosted.ts";

interface HostedRouteOptions {
  hosted: Hosted;
  calling: Pick<Calling, "receiveHosted">;
  /** True: the server is stopping and takes no more calls. */
  draining(): boolean;
  log: Logger;
}

const BODY_BYTES_MAX = 64 * 1024;

const asCarrier = (http: HttpRequest, method: "GET" | "POST", origin: string): CarrierRequest => ({
  method,
  url: origin + http.path + (http.query === "" ? "" : `?${http.query}`),
  header: (name) => http.headers[name] ?? null,
  body: http.body,
});

const replyOf = ({ status, contentType, body }: WebhookReply): Reply =>
  ({ status, contentType, content: body });

export function hostedRoutes(
  { hosted, calling, draining, log }: HostedRouteOptions,
): { routes: HttpRoute[]; socket: SocketRoute; connect(): void } {
  const { carrier, addresses } = hosted;
  const receive: Receive = (arrival, join) => (draining()
    ? Promise.resolve("busy")
    : calling.receiveHosted(hosted, arrival, join));
  const paths = hostedPaths(carrier.account);
  const genuine = (
    http: HttpRequest, method: "GET" | "POST", origins: readonly string[],
  ): CarrierRequest | null =>
    origins.map((origin) => asCarrier(http, method, origin))
      .find((request) => carrier.isGenuine(request)) ?? null;
  const refuse = (what: string): never => {
    // The usual cause is an address other than the one the carrier was given.
    log.warn({ what, carrier: carrier.account }, "a carrier's signature is missing or wrong: check PARLEY_PUBLIC_URL and the carrier's keys");
    throw new Fault(403, "The signature is not valid.");
  };
  const webhook = (
    pattern: string,
    handle: (
      report: CallReport | null, params: readonly string[],
    ) => WebhookReply | Promise<WebhookReply>,
  ): HttpRoute => ({
    method: "POST",
    pattern,
    bodyBytesMax: BODY_BYTES_MAX,
    handle: async (http) => {
      const request = genuine(http, "POST", addresses) ?? refuse("webhook");
      return replyOf(await handle(carrier.read(request), http.params));
    },
  });
  return {
    connect: () => hosted.connect(receive),
    // A carrier that reports its calls over a connection of its own needs no webhooks.
    routes: carrier.connect ? [] : [
      webhook(paths.voice, (report) => {
        if (!report?.isOffer) return report?.reply ?? NO_REPLY;
        return hosted.offer(report, receive);
      }),
      webhook(`${paths.status}/:token`, (report, [token = ""]) => {
        if (report && isUuid(token)) hosted.report(token, report);
        return report?.reply ?? NO_REPLY;
      }),
    ],
    socket: {
      pattern: paths.media,
      errorShape: "message",
      accept: async (http) => {
        if (carrier.signsSockets) {
          genuine(http, "GET", addresses.map(socketUrlOf)) ?? refuse("socket");
        }
        return (socket) => hosted.serve(socket);
      },
    },
  };
}
