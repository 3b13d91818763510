// Calls without a carrier: the test decides what happens on them. Used by the tests of the
// dashboard's pages about calls.
import assert from "node:assert/strict";
import type { FunctionCall } from "#events/events.ts";
import type { TurnLatency } from "#features/calls/records/records.ts";
import type { LegQuality } from "#providers/carriers/port.ts";
import type { TestServer } from "#support/server.ts";

interface Made {
  phone?: string;
  variables?: Record<string, string>;
}

type Speaker = "assistant" | "customer";

export const TURN: TurnLatency = {
  endpointMs: 200, finalTranscriptMs: 210, firstTokenMs: 420, firstAudioMs: 530, heardMs: 560,
};
export const QUALITY: LegQuality = {
  codec: "pcmu", jitterMs: 1.8, jitterMaxMs: 6.2, packetsReceived: 3184, packetsLost: 5,
  packetsLate: 1, packetsDuplicate: 0, lossPercent: 0.19, framesConcealed: 6, packetsSent: 3190,
  delayMs: 52, roundTripMs: 24.5, remoteJitterMs: null, remotePacketsLost: 2,
  remoteLossPercent: 0.06, rFactor: 91.4, mos: 4.38,
};

/** `server`: the one that runs; calls are those of its account and this assistant. */
export function placedCalls(server: () => TestServer, assistantId: number) {
  const { accountId } = server();
  const calls = () => server().app.features.calls;
  async function begin({ phone = "+15550109999", variables = {} }: Made = {}): Promise<number> {
    const assistant = await server().app.features.assistants.find(accountId, assistantId);
    assert.ok(assistant);
    const { call } = await calls().begin({
      assistant, type: "outbound", conversationUuid: null, assistantPhone: "+15550101111",
      customerPhone: phone, variables,
    });
    return call.id;
  }

  async function answered(made?: Made): Promise<number> {
    const id = await begin(made);
    await calls().change({ id, accountId }, "ringing", {});
    await calls().change({ id, accountId }, "in-progress", {});
    return id;
  }

  /** Each utterance begins a second after the last. */
  const clock = { ms: 0 };
  async function said(
    id: number, speaker: Speaker, text: string, functionCalls: FunctionCall[] = [],
  ): Promise<void> {
    clock.ms += 1000;
    await calls().addTranscript({ id, accountId }, {
      speaker, text, startMs: clock.ms, endMs: clock.ms + 900, interrupted: false, functionCalls,
    });
  }

  const saying = (id: number, speaker: Speaker, text: string): void =>
    calls().transcriptDelta({ id, accountId }, { speaker, text });

  async function end(
    id: number,
    rest: {
      hasRecording?: boolean; evaluation?: object; quality?: LegQuality; turns?: TurnLatency[];
    } = {},
  ): Promise<void> {
    await calls().end({ id, accountId }, {
      finalStatus: "ended_by_customer", reason: "customer_hung_up",
      turns: rest.turns ?? [TURN],
      hasRecording: rest.hasRecording ?? false,
      quality: rest.quality ?? null,
    });
    await calls().finish({ id, accountId }, {
      evaluation: { ...rest.evaluation }, evaluationError: null,
    });
  }
  return { clock, begin, answered, said, saying, end };
}
