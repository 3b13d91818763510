// Cookies of the server's own pages: read from requests, written into replies. Over https a cookie
// has the `__Host-` prefix, so that no other host, path or plain connection can have set it.
import type { HttpRequest } from "./exchange.ts";

interface CookieOptions {
  isSecure: boolean;
  /** Absent: until the browser is closed; 0: gone at once. */
  maxAgeS?: number;
  /** Lax: also sent when a link on another site leads here, as after an OpenID sign-in. */
  sameSite: "Strict" | "Lax";
}

const nameOf = (name: string, isSecure: boolean): string => isSecure ? `__Host-${name}` : name;

/** Null where there is none, or more than one: then somebody else has planted one. */
export function readCookie(http: HttpRequest, name: string, isSecure: boolean): string | null {
  const wanted = `${nameOf(name, isSecure)}=`;
  const found = (http.headers.cookie ?? "").split(/[;,]/).map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(wanted));
  return found.length === 1 ? found[0]?.slice(wanted.length) ?? null : null;
}

/** `value` may have letters, digits, `-`, `_` and dots. */
export function writeCookie(
  name: string, value: string, { isSecure, maxAgeS, sameSite }: CookieOptions,
): string {
  return [
    `${nameOf(name, isSecure)}=${value}`, "Path=/", "HttpOnly", `SameSite=${sameSite}`,
    ...isSecure ? ["Secure"] : [],
    ...maxAgeS === undefined ? [] : [`Max-Age=${Math.round(maxAgeS)}`],
  ].join("; ");
}
