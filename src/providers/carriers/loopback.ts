// A carrier whose far end is a script in this process: a person who picks up, speaks prepared
// lines, waits, interrupts, presses keys and hangs up, or an answering machine. It serves tests,
// benchmarks and trying an assistant without a telephone. It has no clock of its own: every frame
// it receives makes it return one.
import type { System } from "#core/system.ts";
import { wordsIn } from "#core/values.ts";
import type { Pcm } from "#providers/speech/port.ts";
import { createWordDecoder } from "#providers/speech/loopback.ts";
import { FRAME_MS, type Carrier, type DialRequest, type Leg, type LegEvent } from "./port.ts";

export type CallerStep =
  | { say: string }
  | { waitMs: number }
  /** Waits until the assistant has spoken and been quiet for so long, or `latestMs` for speech. */
  | { quietMs: number; latestMs?: number }
  /** Waits until so many more words of the assistant have been heard to their end. */
  | { words: number }
  | { dtmf: string }
  /** The tone of an answering machine. */
  | { beepMs: number }
  /** Sound without words: a cough, a door. */
  | { noiseMs: number }
  | { hangUp: true };

export interface CallerScript {
  /** The time from dialling to ringing, and from ringing to the pick-up. */
  ringMs: number;
  answerMs: number;
  outcome: "answers" | "busy" | "no_answer" | "rejected" | "failed";
  steps: CallerStep[];
}

interface LoopbackCarrierOptions {
  system: System;
  /** The script of the number dialled, or of a person who says `lines`. */
  scriptOf(to: string, lines: string[] | undefined): CallerScript;
  /** Synthesises the far end's voice; `ready` may be called later. */
  speak(text: string, rate: number, ready: (pcm: Pcm) => void): void;
  /** For tests: everything the far end hears, frame by frame. */
  onHeard?(frame: Pcm): void;
  /** For tests: words of the loopback speech the far end heard to their end. */
  onWord?(word: string): void;
}

const LOUD = 500;
const BEEP_HZ = 1000;
const NOISE_HZ = 130;
const TONE_LEVEL = 8000;

export function createLoopbackCarrier(options: LoopbackCarrierOptions): Carrier {
  return {
    name: "loopback",
    inbound: null,
    dial: (request, publish) => new LoopbackLeg(options, request, publish),
  };
}

class LoopbackLeg implements Leg {
  readonly rate: Leg["rate"];
  readonly transfer: Leg["transfer"];
  readonly #options: LoopbackCarrierOptions;
  readonly #publish: (event: LegEvent) => void;
  readonly #silence: Pcm;
  readonly #decoder: ReturnType<typeof createWordDecoder>;
  readonly #steps: CallerStep[];
  #over = false;
  /** What the far end is saying, and how far it has got. */
  #line: Pcm | null = null;
  #lineAt = 0;
  #words: SpokenWords | null = null;
  #waitsForVoice = false;
  #waitedMs = 0;
  #quietMs = 0;
  #heardSpeech = false;
  #wordsHeard = 0;

  constructor(
    options: LoopbackCarrierOptions,
    request: DialRequest,
    publish: (event: LegEvent) => void,
  ) {
    this.#options = options;
    this.#publish = publish;
    this.rate = request.rate;
    this.#silence = new Int16Array((request.rate * FRAME_MS) / 1000);
    this.#decoder = createWordDecoder(request.rate, ({ text, frames, of }) => {
      if (frames < of) return;
      this.#wordsHeard += 1;
      options.onWord?.(text);
    });
    this.transfer = () => this.#end("transferred");
    const script = options.scriptOf(request.to, request.lines);
    this.#steps = [...script.steps];
    this.#ring(script, request);
  }

  send(frame: Pcm): void {
    if (this.#over) return;
    this.#options.onHeard?.(frame);
    this.#decoder.write(frame);
    const isSpeech = Math.abs(frame[frame.length >> 1] ?? 0) > LOUD;
    this.#quietMs = isSpeech ? 0 : this.#quietMs + FRAME_MS;
    this.#heardSpeech ||= isSpeech;
    const pcm = this.#next();
    if (!this.#over) this.#publish({ kind: "audio", pcm });
  }

  clear(): void {
    this.#publish({ kind: "cleared", droppedMs: 0 });
  }

  sendDtmf(): void {
    // The script does not react to keys.
  }

  hangUp(): void {
    this.#end("we_hung_up");
  }

  #ring({ ringMs, answerMs, outcome }: CallerScript, { ringingMs }: DialRequest): void {
    const { system } = this.#options;
    system.after(ringMs, () => {
      if (this.#over) return;
      if (outcome === "failed" || outcome === "rejected" || outcome === "busy") {
        return this.#end(outcome);
      }
      this.#publish({ kind: "ringing" });
      const isAnswered = outcome === "answers" && answerMs < ringingMs;
      system.after(isAnswered ? answerMs : ringingMs, () => {
        if (this.#over) return;
        if (isAnswered) this.#publish({ kind: "answered" });
        else this.#end("no_answer");
      });
    });
  }

  #end(cause: Extract<LegEvent, { kind: "ended" }>["cause"]): void {
    if (this.#over) return;
    this.#over = true;
    this.#publish({ kind: "ended", cause });
  }

  /** The far end's next frame. */
  #next(): Pcm {
    if (this.#line) return this.#speakOn(this.#line);
    for (let step = this.#steps[0]; step && !this.#waitsForVoice; step = this.#steps[0]) {
      if (!this.#isDone(step)) break;
      this.#steps.shift();
      this.#startCounting();
      this.#begin(step);
      if (this.#over) break;
      if (this.#line) return this.#speakOn(this.#line);
    }
    return this.#silence;
  }

  /** Resets what a step waits for, which counts from the end of the step before it. */
  #startCounting(): void {
    this.#waitedMs = 0;
    this.#heardSpeech = false;
    this.#wordsHeard = 0;
  }

  #isDone(step: CallerStep): boolean {
    if ("waitMs" in step) return (this.#waitedMs += FRAME_MS) > step.waitMs;
    if ("quietMs" in step) {
      if (this.#heardSpeech) return this.#quietMs >= step.quietMs;
      return (this.#waitedMs += FRAME_MS) > (step.latestMs ?? Infinity);
    }
    if ("words" in step) return this.#wordsHeard >= step.words;
    return true;
  }

  #begin(step: CallerStep): void {
    if ("say" in step) this.#say(step.say);
    else if ("dtmf" in step) for (const digit of step.dtmf) this.#publish({ kind: "dtmf", digit });
    else if ("beepMs" in step) this.#line = tone(step.beepMs, this.rate, BEEP_HZ);
    else if ("noiseMs" in step) this.#line = tone(step.noiseMs, this.rate, NOISE_HZ);
    else if ("hangUp" in step) this.#end("far_hung_up");
  }

  #say(text: string): void {
    this.#waitsForVoice = true;
    this.#options.speak(text, this.rate, (pcm) => {
      this.#waitsForVoice = false;
      this.#line = pcm.length > 0 ? pcm : null;
      this.#words = new SpokenWords(text, pcm, (words, isFinal) =>
        this.#publish({ kind: "words", text: words, isFinal }));
    });
  }

  #speakOn(line: Pcm): Pcm {
    const end = this.#lineAt + this.#silence.length;
    let frame = line.subarray(this.#lineAt, end);
    this.#lineAt = end;
    this.#words?.spokenTo(end);
    if (end >= line.length) {
      this.#line = null;
      this.#lineAt = 0;
      this.#words = null;
      this.#startCounting();
    }
    if (frame.length < this.#silence.length) {
      const padded = new Int16Array(this.#silence.length);
      padded.set(frame);
      frame = padded;
    }
    return frame;
  }
}

/** Publishes a line's words as its audio plays: each takes time in proportion to its letters. */
class SpokenWords {
  readonly #words: string[];
  readonly #text: string;
  readonly #from: number;
  readonly #to: number;
  readonly #publish: (text: string, isFinal: boolean) => void;
  #said = 0;
  #isOver = false;

  constructor(text: string, pcm: Pcm, publish: (text: string, isFinal: boolean) => void) {
    this.#words = wordsIn(text);
    this.#text = this.#words.join(" ");
    this.#from = Math.max(0, pcm.findIndex((sample) => Math.abs(sample) > LOUD));
    this.#to = pcm.findLastIndex((sample) => Math.abs(sample) > LOUD) + 1;
    this.#publish = publish;
  }

  spokenTo(sample: number): void {
    if (this.#isOver) return;
    if (sample >= this.#to) {
      this.#isOver = true;
      return this.#publish(this.#text, true);
    }
    const share = Math.max(0, sample - this.#from) / (this.#to - this.#from);
    const text = this.#text.slice(0, Math.floor(share * this.#text.length) + 1);
    // The last one of them is still being said.
    const said = text.split(" ").length - 1;
    if (said <= this.#said) return;
    this.#said = said;
    this.#publish(this.#words.slice(0, said).join(" "), false);
  }
}

function tone(ms: number, rate: number, hertz: number): Pcm {
  const pcm = new Int16Array(Math.round((ms * rate) / 1000));
  for (let at = 0; at < pcm.length; at += 1) {
    pcm[at] = Math.round(TONE_LEVEL * Math.sin((2 * Math.PI * hertz * at) / rate));
  }
  return pcm;
}
