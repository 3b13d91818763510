// The Asterisk carrier alone, connected to a double of Asterisk: what it requests from the double,
// and what it reports to its listener.
import assert from "node:assert/strict";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import {
  createAsteriskCalls, type AsteriskCallsOptions,
} from "#providers/carriers/hosted/asterisk/calls.ts";
import type { CallReport, HostedCalls, HostedDial } from "#providers/carriers/hosted/port.ts";
import {
  DOUBLE_PASSWORD, DOUBLE_USER, startAsteriskDouble, type AsteriskDouble,
} from "./asterisk-double.ts";
import { createReceived } from "#support/received.ts";

export const CUSTOMER = "+14155550100";
export const NUMBER = "+14155550111";
export interface Heard {
  kind: string;
  token: string | null;
  report: CallReport;
}

export const log = createLogger("silent");
export const system = createSystem();
export const newToken = (): string => system.uuid();

/** A double and a carrier; `begin` connects them, until the carrier reads what is there. */
export async function connectDouble(more: Partial<AsteriskCallsOptions> = {}) {
  const asterisk = await startAsteriskDouble();
  const heard = createReceived<Heard>();
  const calls = createAsteriskCalls({
    url: asterisk.url, user: DOUBLE_USER, password: DOUBLE_PASSWORD, app: "parley",
    endpoint: "PJSIP/{number}@trunk", media: "here", system, log,
    linkLimits: { pauseMs: 10, pauseMaxMs: 50 }, callLimits: { settleMs: 20 }, ...more,
  });
  const close = async (): Promise<void> => {
    await calls.close();
    await asterisk.close();
  };
  const begin = async (): Promise<void> => {
    calls.connect!({
      // Tests wait for a report by its token and kind together.
      report: (token, report) => {
        for (const { kind } of report.events) heard.receive({ kind: `${token} ${kind}`, token, report });
      },
      offer: (report) => heard.receive({ kind: `offer ${report.callId}`, token: null, report }),
    });
    await asterisk.received.event<string>("GET /bridges");
  };
  return { asterisk, calls, heard, begin, close };
}

export const request = (token: string, more: Partial<HostedDial> = {}): HostedDial => ({
  to: CUSTOMER, from: NUMBER, ringingMs: 29_500, detectMachine: true,
  join: {
    url: "/carriers/asterisk/media", parameters: { token: "shown" },
    statusUrl: `/carriers/asterisk/status/${token}`,
  },
  ...more,
});

export const callOf = (token: string): string => `parley-call-${token}`;
export const mediaOf = (token: string): string => `parley-media-${token}`;
export const roomOf = (token: string): string => `parley-room-${token}`;
export const joins = (asterisk: AsteriskDouble, token: string): unknown[] =>
  asterisk.requests(`POST /bridges/${roomOf(token)}/addChannel`).map(({ body }) => body.channel);

/** A call that was answered, with its room set up. */
export async function talking(
  { asterisk, calls }: { asterisk: AsteriskDouble; calls: HostedCalls }, token = newToken(),
): Promise<string> {
  assert.equal((await calls.dial(request(token))).kind, "placed");
  asterisk.enters(callOf(token));
  await asterisk.received.event<string>(`POST /bridges/${roomOf(token)}/addChannel`, 1);
  return token;
}
