// How a hosted carrier reaches this server: a call that comes in asks here what to do, calls are
// reported here, and their sound comes over a WebSocket. Each of them only with the carrier's
// signature over the address below PARLEY_PUBLIC_URL.
import { Fault } from "../core/faults.ts";
import type { Logger } from "../core/logger.ts";
import { isUuid } from "../core/values.ts";
import type { HttpRequest, HttpRoute, Reply, SocketRoute } from "../http/exchange.ts";
import type { CarrierRequest, WebhookReply } from "../providers/carriers/hosted/port.ts";
import type { Calling } from "./calling.ts";
import { HOSTED_PATHS, socketUrlOf, type Hosted, type Receive } from "./hosted.ts";

export interface HostedRouteOptions {
  hosted: Hosted;
  calling: Pick<Calling, "receiveHosted">;
  /** The server stops: no more calls are taken. */
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

const NOTHING: Reply = { status: 204, contentType: "text/plain", content: "" };

export function hostedRoutes(
  { hosted, calling, draining, log }: HostedRouteOptions,
): { routes: HttpRoute[]; socket: SocketRoute } {
  const { carrier, publicUrl } = hosted;
  const refuse = (what: string): never => {
    // The usual cause is an address other than the one the carrier was given.
    log.warn({ what }, "a carrier's signature is missing or wrong; is PARLEY_PUBLIC_URL right?");
    throw new Fault(403, "The signature is not valid.");
  };
  const webhook = (
    pattern: string,
    handle: (request: CarrierRequest, params: readonly string[]) => Reply | Promise<Reply>,
  ): HttpRoute => ({
    method: "POST",
    pattern,
    bodyBytesMax: BODY_BYTES_MAX,
    handle: (http) => {
      const request = asCarrier(http, "POST", publicUrl);
      return carrier.isGenuine(request) ? handle(request, http.params) : refuse("webhook");
    },
  });
  return {
    routes: [
      webhook(HOSTED_PATHS.voice, async (request) => {
        const report = carrier.read(request);
        if (!report?.isOffer) return NOTHING;
        const receive: Receive = draining() ? () => Promise.resolve("busy") : calling.receiveHosted;
        return replyOf(await hosted.offer(report, receive));
      }),
      webhook(`${HOSTED_PATHS.status}/:token`, (request, [token = ""]) => {
        const report = carrier.read(request);
        if (report && isUuid(token)) hosted.report(token, report);
        return NOTHING;
      }),
    ],
    socket: {
      pattern: HOSTED_PATHS.media,
      errorShape: "message",
      accept: (http) => {
        const request = asCarrier(http, "GET", socketUrlOf(publicUrl));
        if (carrier.signsSockets && !carrier.isGenuine(request)) refuse("socket");
        return (socket) => hosted.serve(socket);
      },
    },
  };
}
