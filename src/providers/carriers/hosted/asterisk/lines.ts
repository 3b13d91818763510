// What is known of calls over Asterisk while they last, and what their channels and bridges are
// called there: the names say whose they are, also to a server that has forgotten. Used by
// switchboard.ts.
import { isUuid } from "#core/values.ts";
import type { AriChannel } from "./ari.ts";
import type { Room } from "./room.ts";

export interface Line {
  /** The token in the address its reports go to. */
  token: string;
  callId: string;
  parameters: Record<string, string>;
  /** Asterisk has it, or has said that it does not. */
  isPlaced: boolean;
  isAnswered: boolean;
  /** It leaves us, or has left, and goes on. */
  isHandedOn: boolean;
  room: Room | null;
}

type Part = "call" | "media" | "room";

/** Names of one application. */
export function namesOf(app: string) {
  const head = `${app}-`;
  return {
    of: (part: Part, token: string): string => `${head}${part}-${token}`,
    /** Null: it is not ours, or a call that came in. */
    read: (id: string): { part: Part; token: string } | null => {
      const [, part, token = ""] = id.startsWith(head)
        ? /^(call|media|room)-(.*)$/.exec(id.slice(head.length)) ?? [] : [];
      return isUuid(token) ? { part: part as Part, token } : null;
    },
  };
}

/** Whether a channel waits for what the application wants of it. */
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
