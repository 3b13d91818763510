// What becomes of a request that no route takes: 405 where its path has other methods, else 404.
import { Fault } from "#core/faults.ts";
import { API_ROOT } from "./api.ts";
import type { HeaderMap, HttpRequest, Reply } from "./exchange.ts";
import type { Route } from "./route.ts";
import type { HttpServer } from "./server.ts";

/** `render`: the refusal as whoever asks on that path expects it. */
export function mountFallback(
  server: HttpServer,
  routes: readonly Route[],
  render: (fault: Fault, http: HttpRequest, headers: HeaderMap) => Reply,
): void {
  const patterns = routes.flatMap(({ method, path, aliases = [] }) =>
    [path, ...aliases].map((template) => ({
      method,
      expression: new RegExp(`^${API_ROOT}${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    })));
  server.fallback((http) => {
    const allowed = patterns
      .filter(({ expression }) => expression.test(http.path))
      .map(({ method }) => method);
    return allowed.length > 0
      ? render(
          new Fault(405, `The ${http.method} method is not supported for this route.`), http,
          { Allow: allowed.join(", ") })
      : render(new Fault(404, "Not found."), http, {});
  });
}
