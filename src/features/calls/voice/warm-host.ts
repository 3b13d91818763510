// Makes the warm transfer of a call of the media thread: its engines, the leg to the colleague and
// the recording of it. Called by host.ts.
import { createComfortNoise } from "#audio/comfort-noise.ts";
import type { TransferOutcome, WarmStage } from "#features/calls/records/warm-stages.ts";
import type { Leg, LegEvent } from "#providers/carriers/port.ts";
import type { CallSession, Said } from "./brain.ts";
import type { HostOptions } from "./host.ts";
import { createLegTranscriber } from "./leg-transcriber.ts";
import type { EngineCodes, LegSetup } from "./protocol.ts";
import { SecondLeg, type SecondLegHandlers, type SecondLegOptions } from "./warm/second-leg.ts";
import { WarmSession, type WarmSessionOptions } from "./warm/warm-session.ts";

export interface WarmSetup
  extends Pick<
    WarmSessionOptions, "settings" | "texts" | "musicGain" | "afterwardsMs" | "outOfTime"
  > {
  /** Its place among the call's transfers, counted from 1. */
  number: number;
  leg: Extract<LegSetup, { kind: "dialled" }>;
  engines: EngineCodes;
  voice: SecondLegOptions["settings"];
  /** Absolute path; null: the leg is not recorded. */
  recordingPath: string | null;
}

export type WarmReport =
  | {
      kind: "step"; number: number; stage: WarmStage; outcome: TransferOutcome | null;
      detail: string | null;
    }
  /** Something was said on the leg to the colleague; times count from the answer of the call. */
  | { kind: "said"; number: number; said: Said };

interface WarmOptions {
  setup: WarmSetup;
  caller: CallSession;
  openLeg(publish: (event: LegEvent) => void): Leg;
  report(report: WarmReport): void;
}

export interface WarmCall {
  readonly session: WarmSession;
  /** Resolves once the recording of the leg is closed. */
  closed(): Promise<unknown>;
}

export function openWarm(options: HostOptions, warm: WarmOptions): WarmCall {
  const { setup, caller, report } = warm;
  const { number, engines, settings, texts, musicGain, afterwardsMs, outOfTime } = setup;
  if (engines.synthesizer === null) throw new Error("a warm transfer needs a voice");
  const synthesizer = options.synthesizer(engines.synthesizer);
  let closing: Promise<unknown> = Promise.resolve();
  let detail: string | null = null;
  const openLeg = (handlers: SecondLegHandlers): SecondLeg => {
    const made = createLeg(options, warm, {
      synthesizer,
      onEnded: (why) => {
        detail = why;
      },
    });
    return new SecondLeg(made.options, {
      ...handlers,
      ended: (cause) => {
        closing = made.close();
        handlers.ended(cause);
      },
    });
  };
  const session = new WarmSession({
    settings, texts, musicGain, afterwardsMs, outOfTime, caller, synthesizer,
    voice: setup.voice.voice, openLeg,
    onStep: (stage, outcome) => report({ kind: "step", number, stage, outcome, detail }),
    onSaid: (said) => report({ kind: "said", number, said }),
    clock: options.clock, system: options.system,
  });
  return { session, closed: () => closing };
}

/** The options of the leg, and a function that closes its recording. */
function createLeg(
  options: HostOptions, { setup, openLeg }: WarmOptions,
  { synthesizer, onEnded }: {
    synthesizer: SecondLegOptions["synthesizer"]; onEnded(detail: string): void;
  },
): { options: SecondLegOptions; close(): Promise<unknown> } {
  const { leg, engines, recordingPath, voice } = setup;
  const { beeps, clock, log, system, vad } = options;
  const words = engines.transcriber === null && leg.carrier === "loopback"
    ? createLegTranscriber(system) : null;
  const recorder = recordingPath === null ? null : options.recorder(recordingPath, leg.rate);
  const transcriber = engines.transcriber === null
    ? words?.transcriber ?? null : options.transcriber(engines.transcriber);
  return {
    options: {
      connect: (publish) => openLeg((event) => {
        if (event.kind === "words") return words?.receive(event);
        if (event.kind === "ended" && event.detail !== undefined) onEnded(event.detail);
        publish(event);
      }),
      settings: voice, synthesizer, transcriber,
      vad: words ? words.watch(vad) : vad, noiseFilter: null, beeps,
      comfort: leg.carrier === "sip" ? createComfortNoise(leg.rate) : null,
      record: recorder && ((colleague, ours) => recorder.write(colleague, ours)),
      clock, system, log,
    },
    close: () => (recorder?.close() ?? Promise.resolve(0)).catch((error: unknown) =>
      log.error({ err: error }, "could not close the recording of a leg")),
  };
}
