// Answers requests that match no route: 405 where the path has other methods, else 404.
import { Fault } from "#core/faults.ts";
import { API_ROOT, corsHeaders, isForPages, preflightReply } from "./api.ts";
import type { HeaderMap, HttpRequest, Reply } from "./exchange.ts";
import type { Route } from "./route.ts";
import type { HttpServer } from "./server.ts";

const METHOD = /^[A-Z]{1,20}$/;

/** `render`: turns the fault into the error shape that clients of that path expect. */
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
    // Pages of any origin may read that an address is misspelt: the answer reveals nothing.
    const isReadable = http.path.startsWith(`${API_ROOT}/`) && known.every(isForPages);
    const cors = isReadable ? corsHeaders(http) : {};
    if (known.length > 0) {
      const fault = new Fault(405, `The ${http.method} method is not supported for this route.`);
      const allowed = [...new Set(known.map(({ method }) => method))].join(", ");
      return render(fault, http, { ...cors, Allow: allowed });
    }
    const wanted = http.headers["access-control-request-method"] ?? "";
    return isReadable && http.method === "OPTIONS" && METHOD.test(wanted)
      ? preflightReply(http, wanted)
      : render(new Fault(404, "Not found."), http, cors);
  });
}
