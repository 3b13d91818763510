// The person who is signed in: a member by a cookie that no script reads, or the API key in this
// browser; and the client that uses it. The key stays in this tab, or on this device on request.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { createParley, ParleyError, type Parley } from "#client/client.ts";
import { inTab, onDevice } from "#ui/dashboard/kit/kept.ts";
import { said } from "#ui/dashboard/kit/said.ts";
import { bySocket } from "./by-socket.ts";
import { keyed } from "./lost-answers.ts";
import { forgetUnshown, spoilSeen } from "./seen.ts";
import { waitingFor } from "./waiting.ts";

const KEY = "parley-api-key";

export function rememberedKey(): string | null {
  return inTab.getItem(KEY) ?? onDevice.getItem(KEY);
}

export function rememberKey(key: string, isForDevice: boolean): void {
  forgetKey();
  (isForDevice ? onDevice : inTab).setItem(KEY, key);
}

export function forgetKey(): void {
  inTab.removeItem(KEY);
  onDevice.removeItem(KEY);
}

export interface Session {
  api: Parley;
  /** For the few requests that are not plain JSON: uploads with progress. Null: a member. */
  apiKey: string | null;
  /** A position of the account's stream from before anything was loaded; null: none is known. */
  beginning(): Promise<string | null>;
  /** Rejects where a member's session could not be ended: they are signed in still. */
  signOut(): Promise<void>;
}

const PATIENCE = 5;

interface ReadSession {
  token: string;
  /** Where the account's stream was before the session read anything. */
  position: string;
}

/** The read sessions by API key, shared by all of this page that use the key. */
const sessions = new Map<string, Promise<ReadSession | null>>();

/** Null where the server opens none; a request with the key itself then says why. */
async function openSession(apiKey: string): Promise<ReadSession | null> {
  const response = await globalThis.fetch(`${location.origin}/api/user/dashboard-sessions`, {
    method: "POST", headers: { Authorization: `Bearer ${apiKey}` },
  });
  return response.ok ? (await response.json()) as ReadSession : null;
}

function sessionOf(apiKey: string): Promise<ReadSession | null> {
  const session = sessions.get(apiKey) ?? openSession(apiKey).catch(() => null);
  sessions.set(apiKey, session);
  return session;
}

export const beginningOf = async (apiKey: string): Promise<string | null> =>
  (await sessionOf(apiKey))?.position ?? null;

/** Called on signing out: the next person's stream begins later. */
export const forgetSessions = (): void => sessions.clear();

/** Reads use a session of the key, which has its own rate limit; everything else uses the key. */
function readingBySession(apiKey: string): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    if (request.method !== "GET") return globalThis.fetch(request);
    const session = sessionOf(apiKey);
    const opened = await session;
    if (opened !== null) {
      const reading = new Request(request);
      reading.headers.set("Authorization", `Bearer ${opened.token}`);
      const response = await globalThis.fetch(reading);
      if (response.status !== 401) return response;
    }
    // None was opened, or it is over: the next read opens another.
    if (sessions.get(apiKey) === session) sessions.delete(apiKey);
    return globalThis.fetch(request);
  };
}

/** Reads wait when the rate limit is reached; people repeat requests that change something. */
const patient = (fetchOf: typeof fetch): typeof fetch => async (input, init) => {
  const method = init?.method ?? (input instanceof Request ? input.method : "GET");
  for (let attempt = 1; ; attempt += 1) {
    const response = await fetchOf(input, init);
    if (response.status !== 429 || method !== "GET" || attempt === PATIENCE) return response;
    const ms = (Number(response.headers.get("retry-after")) || 1) * 1000;
    await waitingFor(ms, () => new Promise((resolve) => setTimeout(resolve, ms)));
  }
};

/** Requests of the sign-in page itself, to routes that need no API key. */
export async function askPage<T>(method: "GET" | "POST", path: string, body?: object): Promise<T> {
  const response = await fetch(`${location.origin}/api${path}`, {
    method,
    ...body ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {},
  });
  // A proxy in front of a server that is down answers something other than JSON.
  const answer = await response.json().catch(() => null) as T | null;
  if (!response.ok || answer === null) throw new ParleyError(response.status, answer);
  return answer;
}

const byCookie: typeof fetch = (input, init) => globalThis.fetch(input, init);

const deletes = (method: string, url: string): boolean =>
  method === "DELETE" || (method === "POST" && /[/-]delete$/.test(url));

/** `onRefused`: the key is no longer valid, or the session is over. Null: a member's cookie. */
export function openApi(apiKey: string | null, onRefused: () => void = () => undefined): Parley {
  const fetchOf = keyed(patient(bySocket(
    apiKey === null ? byCookie : readingBySession(apiKey))));
  const watchedFetch: typeof fetch = async (input, init) => {
    const response = await fetchOf(input, init);
    if (response.status === 401) onRefused();
    const method = init?.method ?? (input instanceof Request ? input.method : "GET");
    // No event announces most changes; those made here are known.
    if (method !== "GET" && response.ok) spoilSeen(null);
    if (deletes(method, response.url) && response.ok) forgetUnshown();
    return response;
  };
  const baseUrl = `${location.origin}/api`;
  return createParley({ baseUrl, fetch: watchedFetch, ...apiKey === null ? {} : { apiKey } });
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("nobody is signed in");
  return session;
}

export const useApi = (): Parley => useSession().api;

/** What the client answered, or throws ParleyError with the server's own words. */
export async function unwrap<T>(
  answer: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok) throw new ParleyError(response.status, error);
  return data as T;
}

/**
 * The first message of a 422 for each field, by the field's name, in the reader's language.
 * `reworded` puts in the name that people see for the field.
 */
export function fieldErrors(
  error: unknown, reworded = (_name: string, message: string): string => message,
): Record<string, string> {
  const { errors } = ((error instanceof ParleyError ? error.body : null) ?? {}) as {
    errors?: Record<string, string[]>;
  };
  return Object.fromEntries(
    Object.entries(errors ?? {})
      .map(([field, [text = ""]]) => [field, said(reworded(field, text))]));
}

/** Why an API key is not accepted, by the `reason` of a 401. */
const KEY_REFUSALS: Record<string, string> = {
  unknown: "This server does not know this API key.",
  revoked: "This API key was revoked.",
  expired: "This API key has expired.",
};

export function messageOf(error: unknown): string {
  if (error instanceof ParleyError) {
    const { reason = "" } = (error.body ?? {}) as { reason?: string };
    return (error.status === 401 && KEY_REFUSALS[reason]) || said(error.message);
  }
  // Errors thrown by fetch carry no message for people.
  return error instanceof TypeError ? "The server cannot be reached." : String((error as Error).message);
}
