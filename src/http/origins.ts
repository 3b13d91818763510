// Under which origin a request's client sees this server, for absolute links and same-origin
// checks.
import type { HttpRequest } from "./exchange.ts";

const HOST = /^[A-Za-z0-9.\-_[\]:]{1,255}$/;

/** `publicUrl` wins; else the Host header, which a client may choose but only for itself. */
export function createOrigins(publicUrl: string | null, isTls: boolean) {
  const fixed = publicUrl === null ? null : publicUrl;
  const scheme = isTls ? "https" : "http";
  return {
    of: (http: HttpRequest): string => {
      if (fixed !== null) return fixed;
      const host = http.headers.host ?? "";
      return `${scheme}://${HOST.test(host) ? host : "localhost"}`;
    },
  };
}
