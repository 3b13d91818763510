// The state of calls over Asterisk while they last, and the names of their channels and bridges
// there: the names show which call they belong to, even after a restart. Used by
// switchboard.ts.
import { isUuid } from "#core/values.ts";
import type { AriChannel } from "./ari.ts";
import type { Room } from "./room.ts";

export interface Line {
  /** The token in the call's `statusUrl`. */
  token: string;
  callId: string;
  parameters: Record<string, string>;
  /** Asterisk has responded to the request that places the call. */
  isPlaced: boolean;
  isAnswered: boolean;
  /** The call is being transferred: it leaves our application and continues in the dialplan. */
  isHandedOn: boolean;
  room: Room | null;
}

type Part = "call" | "media" | "room";

/** The names in one application. */
export function namesOf(app: string) {
  const head = `${app}-`;
  return {
    of: (part: Part, token: string): string => `${head}${part}-${token}`,
    /** Null for the name of an incoming call, or one that is not ours. */
    read: (id: string): { part: Part; token: string } | null => {
      const [, part, token = ""] = id.startsWith(head)
        ? /^(call|media|room)-(.*)$/.exec(id.slice(head.length)) ?? [] : [];
      return isUuid(token) ? { part: part as Part, token } : null;
    },
  };
}

/** Whether a channel is in the application. */
export const isIn = (app: string, { dialplan: { app_name: name, app_data: data } }: AriChannel) =>
  name === "Stasis" && data.split(",", 1)[0] === app;

export function createLines() {
  const byToken = new Map<string, Line>();
  const byCall = new Map<string, Line>();
  return {
    add: (line: Line): Line => {
      byToken.set(line.token, line);
      byCall.set(line.callId, line);
      return line;
    },
    /** Idempotent. */
    forget: ({ token, callId }: Line): void => {
      byToken.delete(token);
      byCall.delete(callId);
    },
    ofToken: (token: string): Line | null => byToken.get(token) ?? null,
    ofCall: (callId: string): Line | null => byCall.get(callId) ?? null,
    all: (): Line[] => [...byToken.values()],
    size: (): number => byToken.size,
  };
}
