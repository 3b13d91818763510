// The origin under which a client sees this server, for absolute links and same-origin checks.
import type { HttpRequest } from "./exchange.ts";

const HOST = /^[A-Za-z0-9.\-_[\]:]{1,255}$/;

/** `publicUrl` wins; else the Host header, which a client may choose but only for itself. */
export function createOrigins(publicUrl: string | null, isTls: boolean) {
  const scheme = isTls ? "https" : "http";
  const of = (http: HttpRequest): string => {
    if (publicUrl !== null) return publicUrl;
    const host = http.headers.host ?? "";
    return `${http.forwardedScheme ?? scheme}://${HOST.test(host) ? host : "localhost"}`;
  };
  return {
    of,
    isSecure: (http: HttpRequest): boolean => of(http).startsWith("https:"),
    /**
     * False where the browser says that a page of another site sent the request. Browsers state
     * this for every request that changes something; a client that does not is no browser.
     */
    isOwnPage: (http: HttpRequest): boolean => {
      const { origin, "sec-fetch-site": site = "none" } = http.headers;
      // A forged Host header may not even be a valid URL.
      if (origin !== undefined && origin !== URL.parse(of(http))?.origin) return false;
      return site === "same-origin" || site === "none";
    },
  };
}
