// What becomes of a request that no route takes: 405 where its path has other methods, else 404.
import { Fault } from "#core/faults.ts";
import { API_ROOT, corsHeaders, isForPages, preflightReply } from "./api.ts";
import type { HeaderMap, HttpRequest, Reply } from "./exchange.ts";
import type { Route } from "./route.ts";
import type { HttpServer } from "./server.ts";

const METHOD = /^[A-Z]{1,20}$/;

/** `render`: the refusal as whoever asks on that path expects it. */
export function mountFallback(
  server: HttpServer,
  routes: readonly Route[],
  render: (fault: Fault, http: HttpRequest, headers: HeaderMap) => Reply,
): void {
  const patterns = routes.flatMap((route) =>
    [route.path, ...route.aliases ?? []].map((template) => ({
      route,
      expression: new RegExp(`^${API_ROOT}${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    })));
  server.fallback((http) => {
    const known = patterns.filter(({ expression }) => expression.test(http.path))
      .map(({ route }) => route);
    // Pages of any origin read what is misspelt in an address; nothing of it is anybody's.
    const isReadable = http.path.startsWith(`${API_ROOT}/`) && known.every(isForPages);
    const cors = isReadable ? corsHeaders(http) : {};
    if (known.length > 0) {
      const fault = new Fault(405, `The ${http.method} method is not supported for this route.`);
      const allowed = known.map(({ method }) => method).join(", ");
      return render(fault, http, { ...cors, Allow: allowed });
    }
    const wanted = http.headers["access-control-request-method"] ?? "";
    return isReadable && http.method === "OPTIONS" && METHOD.test(wanted)
      ? preflightReply(http, wanted)
      : render(new Fault(404, "Not found."), http, cors);
  });
}
