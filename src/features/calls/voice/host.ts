// All calls of the media thread: makes a session for each, with its engines, recording and leg,
// and passes messages to and fro. Runs in workers/media.ts; tests run it in their own thread, on a
// clock of their own.
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { AmbienceKind } from "#audio/kinds.ts";
import { createComfortNoise } from "#audio/comfort-noise.ts";
import { mixInto } from "#audio/mix.ts";
import type { Carrier, CarrierName, Leg, LegEvent } from "#providers/carriers/port.ts";
import type { WebPeers } from "#providers/carriers/web/port.ts";
import type { CallEngines, Pcm, Synthesizer, Transcriber } from "#providers/speech/port.ts";
import type { MediaClock } from "./clock.ts";
import type { CallSetup, EngineCodes, FromMedia, LegSetup, ToMedia } from "./protocol.ts";
import type { Brain, CallSession } from "./brain.ts";
import { RealtimeSession } from "./realtime-session.ts";
import type { EndReason } from "#features/calls/records/records.ts";
import { waitsForWords } from "./last-words.ts";
import { isNoiseFiltered, type VoiceSettings } from "./settings.ts";
import { VoiceSession } from "./voice-session.ts";
import { createRemoteLeg, type RemoteLeg } from "./remote-leg.ts";
import { openWarm, type WarmCall, type WarmReport } from "./warm-host.ts";
import { createFaults, type Faults } from "./faults.ts";
import { createLegTranscriber } from "./leg-transcriber.ts";
import { openPerson, type Person } from "./person.ts";

/** Writes one recording; errors are its own to report. */
interface Recorder {
  write(customer: Pcm, assistant: Pcm): void;
  /** Resolves to its length in milliseconds. */
  close(): Promise<number>;
}

export interface HostOptions extends CallEngines {
  ambience(kind: AmbienceKind, rate: number): { next(samples: number): Pcm };
  beeps(rate: number, onBeep: () => void): { push(pcm: Pcm): void };
  recorder(path: string, rate: number): Recorder;
  /** Brings a voice to the loudness of all voices; `key`: whose it is. */
  level(key: string, rate: number): (pcm: Pcm) => Pcm;
  carriers: readonly Carrier[];
  /** Null: web calls have only their sockets. */
  peers: WebPeers | null;
  clock: MediaClock;
  system: System;
  log: Logger;
  post(message: FromMedia, transfer?: ArrayBuffer[]): void;
}

interface Entry {
  session: CallSession;
  /** The session again, by its kind. */
  pipeline: VoiceSession | null;
  realtime: RealtimeSession | null;
  faults: Faults;
  /** Receives the events of a `remote` leg. */
  receiveLeg: ((event: LegEvent) => void) | null;
  /** The `remote` leg itself. */
  remote: RemoteLeg | null;
  settings: VoiceSettings;
  /** The person who takes part with a microphone. */
  person: Person | null;
  /** A person who has left, and whose last words may still be recognised. */
  leaving: Person | null;
  /** The newest warm transfer, even when it is over. */
  warm: WarmCall | null;
}

interface Host {
  receive(message: ToMedia): void;
}

export function createHost(options: HostOptions): Host {
  const calls = new Map<number, Entry>();
  const { post, log } = options;

  const open = (callId: number, setup: CallSetup): void => {
    try {
      calls.set(callId, createEntry(options, callId, setup, {
        ending: (reason, then) => partFrom(calls.get(callId) ?? NOBODY, reason, then),
        forget: () => {
          const { remote, warm } = calls.get(callId) ?? {};
          calls.delete(callId);
          remote?.close();
          return warm?.closed() ?? null;
        },
      }));
    } catch (error) {
      log.error({ err: error, call_id: callId }, "could not set up a call");
      const { message: detail } = error as Error;
      const summary = { reason: "speech_failed", cause: "failed", detail, turns: [] } as const;
      post({ kind: "over", callId, summary, recordedMs: 0 });
    }
  };
  return {
    receive: (message) => {
      if (message.kind === "open") return open(message.callId, message.setup);
      const entry = calls.get(message.callId);
      // Messages that were in flight when the call ended are dropped.
      if (entry && !entry.session.channel.isOver) handle(options, entry, message);
    },
  };
}

function openEngines(
  options: HostOptions, codes: EngineCodes, { watch }: Faults,
): { synthesizer: Synthesizer | null; transcriber: Transcriber | null } {
  return {
    synthesizer: codes.synthesizer === null ? null : watch(options.synthesizer(codes.synthesizer)),
    transcriber: codes.transcriber === null ? null : watch(options.transcriber(codes.transcriber)),
  };
}

function handle(
  options: HostOptions, entry: Entry, message: Exclude<ToMedia, { kind: "open" }>,
): void {
  const { post } = options;
  const { session } = entry;
  switch (message.kind) {
    case "leg":
      return entry.receiveLeg?.(message.event);
    case "peer":
      return entry.remote?.peer(message.request);
    case "reply_text":
      return entry.pipeline?.replyText(message.turn, message.text);
    case "reply_end":
      return entry.pipeline?.replyEnd(message.turn, message.failed);
    case "function":
      return entry.pipeline?.functionRunning(message.running);
    case "function_result":
      return entry.realtime?.functionResult(message.functionCallId, message.json);
    case "say":
      return void session.say(message.text);
    case "mute":
      return session.channel.mute(message.on);
    case "listen": {
      const { callId } = message;
      return session.channel.listen(message.on
        ? (customer, assistant) => {
            const pcm = customer.slice();
            mixInto(pcm, assistant, 1);
            post({ kind: "tap", callId, pcm }, [pcm.buffer]);
          }
        : null);
    }
    case "person_joined":
      return joinPerson(options, entry, message);
    case "person_audio":
      return entry.person?.write(message.pcm);
    case "person_left": {
      const { person } = entry;
      entry.person = null;
      entry.leaving = person;
      return person?.leave(() => {
        // Somebody else may have joined meanwhile.
        if (entry.person) return;
        session.takePart({ kind: "person_left", wasLost: message.wasLost });
      });
    }
    case "hint":
      return session.takePart({ kind: "hint" });
    case "tell":
      return entry.realtime?.tell(message.text);
    case "send_dtmf":
      return session.channel.sendDtmf(message.digits);
    case "become": {
      const { settings, greeting, engines, instructions, functions } = message;
      entry.settings = settings;
      return session.become({
        settings, greeting, instructions, functions, ...openEngines(options, engines, entry.faults),
      });
    }
    case "warm":
      return beginWarm(options, entry, message);
    case "summary":
      return entry.warm?.session.summarised(message.text);
    case "end_after_speech":
      // The assistant has asked for a colleague, and hangs up in the same breath.
      if (message.reason === "assistant_ended" && entry.warm?.session.isOver === false) return;
      entry.warm?.session.cancel();
      return session.endAfterSpeech(message.reason, message.to);
    case "hang_up":
      return session.channel.hangUp(message.reason);
  }
}

function beginWarm(
  options: HostOptions, entry: Entry, { callId, setup }: Extract<ToMedia, { kind: "warm" }>,
): void {
  const { session, settings } = entry;
  const report = (one: WarmReport): void => options.post({ kind: "warm", callId, report: one });
  try {
    entry.warm = openWarm(options, {
      setup, caller: session, report,
      openLeg: (publish) => openLeg(options, setup.leg, publish),
    });
  } catch (error) {
    options.log.error({ err: error, call_id: callId }, "could not set up a warm transfer");
    const { number } = setup;
    report({ kind: "step", number, stage: "over", outcome: "failed", detail: null });
    session.say(settings.phrases.notConnected);
  }
}

function joinPerson(
  options: HostOptions, entry: Entry,
  { callId, author, isAlone, ears }: Extract<ToMedia, { kind: "person_joined" }>,
): void {
  const { session, settings } = entry;
  if (isAlone) entry.warm?.session.cancel();
  const { post, vad, level, system } = options;
  entry.person ??= openPerson({
    author, settings, vad, level, system,
    channel: session.channel,
    transcriber: ears === null ? null : options.transcriber(ears),
    onHears: (pcm) => post({ kind: "person_hears", callId, pcm }, [pcm.buffer as ArrayBuffer]),
    onSaid: (said) => post({ kind: "said", callId, said }),
    onTalking: (isTalking) => session.takePart({ kind: "person_voice", isTalking }),
  });
  session.takePart({ kind: "person_joined", isAlone });
}

const NOBODY = { person: null, leaving: null, warm: null };

/** Nobody hears them any more; `then` runs once their last words are on record. */
function partFrom(
  { person, leaving, warm }: Pick<Entry, keyof typeof NOBODY>, reason: EndReason,
  then: () => void,
): void {
  warm?.session.callerLeft();
  if (waitsForWords(reason)) return leave(person, () => leave(leaving, then));
  person?.close();
  leaving?.close();
  then();
}

const leave = (person: Person | null, then: () => void): void =>
  (person === null ? then() : person.leave(then));

/** What the host does at the end of a call. */
interface Parting {
  ending: Brain["ending"];
  forget(): Promise<unknown> | null;
}

function createEntry(
  options: HostOptions,
  callId: number,
  setup: CallSetup,
  parting: Parting,
): Entry {
  const { settings, leg: legSetup, recordingPath } = setup;
  let receiveLeg: Entry["receiveLeg"] = null;
  let remote: Entry["remote"] = null;
  const faults = createFaults();
  const words = setup.engines.transcriber === null ? createLegTranscriber(options.system) : null;
  const connect = (receive: (event: LegEvent) => void): Leg => {
    const publish = (event: LegEvent): void => {
      if (event.kind === "words") return words?.receive(event);
      if (event.kind === "sound") {
        return options.post({ kind: "sound", callId, isComing: event.isComing });
      }
      recordFailure(options.post, callId, faults, event);
      receive(event);
    };
    if (legSetup.kind !== "remote") return openLeg(options, legSetup, publish);
    receiveLeg = publish;
    remote = createRemoteLeg({ ...options, callId, publish }, legSetup);
    return remote;
  };
  const { rate } = legSetup;
  const recorder = recordingPath === null ? null : options.recorder(recordingPath, rate);
  const common = {
    settings,
    durationMaxMs: setup.durationMaxMs,
    greeting: setup.greeting,
    connect,
    ambience: settings.ambience
      ? { next: options.ambience(settings.ambience.kind, rate).next, gain: settings.ambience.gain }
      : null,
    comfort: isTelephone(legSetup) ? createComfortNoise(rate) : null,
    record: recorder
      ? (customer: Pcm, assistant: Pcm): void => recorder.write(customer, assistant)
      : null,
    clock: options.clock,
    system: options.system,
    log: options.log,
    brain: brainOf(options, callId, recorder, faults, parting),
  };
  // A function, since the session connects its leg, which sets these, when it is constructed.
  const kept = () => ({ faults, receiveLeg, remote, settings, ...NOBODY });
  const { synthesizer, transcriber } = openEngines(options, setup.engines, faults);
  const beeps = settings.voicemail.detects ? options.beeps : null;
  if (setup.realtime !== null) {
    const { vendor, ...asked } = setup.realtime;
    const model = faults.watch(options.speechToSpeech(vendor));
    const realtime = new RealtimeSession({ ...common, beeps, model, realtime: asked, synthesizer });
    return { session: realtime, pipeline: null, realtime, ...kept() };
  }
  const recogniser = transcriber ?? words?.transcriber;
  if (!synthesizer || !recogniser) throw new Error("a call in pipeline mode needs both engines");
  const pipeline = new VoiceSession({
    ...common,
    synthesizer,
    transcriber: recogniser,
    vad: words ? words.watch(options.vad) : options.vad,
    noiseFilter: isNoiseFiltered(settings, rate) ? options.noiseFilter : null,
    // Words that come with the leg have no sound to judge.
    turnEnds: words ? null : options.turnEnds,
    beeps,
  });
  return { session: pipeline, pipeline, realtime: null, ...kept() };
}

function openLeg(
  options: HostOptions, setup: Exclude<LegSetup, { kind: "remote" }>,
  publish: (event: LegEvent) => void,
): Leg {
  switch (setup.kind) {
    case "dialled":
      return carrierOf(options, setup.carrier).dial(setup, publish);
    case "offered": {
      const { name, inbound } = carrierOf(options, setup.carrier);
      if (!inbound) throw new Error(`no calls come in through ${name}`);
      return inbound.answer(setup.offerId, publish);
    }
  }
}

/** Pages and our own far ends have no line that could seem dead: they need no comfort noise. */
const isTelephone = (leg: LegSetup): boolean =>
  leg.kind === "remote" ? leg.hasLine : leg.carrier === "sip";

/** Keeps the cause of a failure for the record; the session does not need to know it. */
function recordFailure(
  post: HostOptions["post"], callId: number, faults: Faults, event: LegEvent,
): void {
  if (event.kind === "ended" && event.detail !== undefined) faults.record(event.detail);
  if (event.kind === "transfer_failed") {
    post({ kind: "transfer_failed", callId, detail: event.detail ?? null });
  }
}

function brainOf(
  { post, log }: HostOptions,
  callId: number,
  recorder: Recorder | null,
  faults: Faults,
  { ending, forget }: Parting,
): Brain {
  return {
    ending,
    ringing: () => post({ kind: "ringing", callId }),
    answered: () => post({ kind: "answered", callId }),
    answeredBy: (by) => post({ kind: "answered_by", callId, by }),
    reply: (turn, text, language, ahead) =>
      post({ kind: "reply", callId, turn, text, language, ahead }),
    goAhead: (turn) => post({ kind: "go_ahead", callId, turn }),
    reengage: (turn) => post({ kind: "reengage", callId, turn }),
    speakUp: (turn, why) => post({ kind: "speak_up", callId, turn, why }),
    cancel: (turn) => post({ kind: "cancel", callId, turn }),
    functionCall: (turn, { callId: functionCallId, name, argumentsJson }) =>
      post({ kind: "function_call", callId, turn, functionCallId, name, argumentsJson }),
    said: (said) => post({ kind: "said", callId, said }),
    delta: (speaker, text) => post({ kind: "delta", callId, speaker, text }),
    state: (state) => post({ kind: "state", callId, state }),
    over: (ended) => {
      const closed = forget();
      const summary = { ...ended, detail: faults.newest };
      const postOver = (recordedMs: number): void => {
        const last = { kind: "over", callId, summary, recordedMs } as const;
        if (closed) void closed.then(() => post(last));
        else post(last);
      };
      if (!recorder) return postOver(0);
      recorder.close().then(postOver, (error: unknown) => {
        log.error({ err: error, call_id: callId }, "could not close a recording");
        postOver(0);
      });
    },
  };
}

function carrierOf({ carriers }: HostOptions, name: CarrierName): Carrier {
  const carrier = carriers.find((one) => one.name === name);
  if (!carrier) throw new Error(`there is no carrier ${name}`);
  return carrier;
}
