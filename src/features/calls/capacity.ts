// How many calls this server takes: as many as its recogniser can follow, and as many as configured
// or, without that setting, until sound comes late. Checked by everything that begins a call,
// before the call has a record or is answered.
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault, restarting } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { GivenWords, VoiceChoice } from "./voice-choice.ts";

/** A frame this late is heard as a gap by telephones with a usual jitter buffer. */
const LATE_MS = 40;
/** This share of late ticks is too much: 99 % have to be in time. */
const LATE_SHARE = 0.01;
/** How many seconds are judged, all of which must be late: a single stall is not overload. */
const SECONDS = 5;
const TICKS_MIN = 20;
/** With fewer calls than this, it is not the calls that make the machine late. */
const CALLS_MIN = 8;

interface Lateness {
  observe(lateMs: number): void;
  /** Whether sound has been late for some seconds up to now. */
  isLate(): boolean;
}

/** Judges lateness by how late each tick of the media clock came. */
export function createLateness(system: System): Lateness {
  let seconds: { second: number; ticks: number; late: number }[] = [];
  const secondNow = (): number => Math.floor(system.monotonicMs() / 1000);
  return {
    observe: (lateMs) => {
      const second = secondNow();
      let current = seconds.at(-1);
      if (current?.second !== second) {
        current = { second, ticks: 0, late: 0 };
        seconds = [...seconds.slice(1 - SECONDS), current];
      }
      current.ticks += 1;
      if (lateMs > LATE_MS) current.late += 1;
    },
    isLate: () => {
      const newest = secondNow();
      return seconds.length === SECONDS
        && seconds.every(({ second, ticks, late }) =>
          second >= newest - 2 * SECONDS && ticks >= TICKS_MIN && late > ticks * LATE_SHARE);
    },
  };
}

interface CapacityOptions extends Pick<VoiceChoice, "recogniserOf"> {
  /** Null: as many as lateness permits. */
  callsMax: number | null;
  isLate: Lateness["isLate"];
  /** How many speakers the recogniser with that code can follow at a time. */
  speakersMax(recogniser: string): number;
}

/** What a call occupies; `recogniser`: the code of the one it needs; null: none. */
interface Place {
  recogniser: string | null;
}

export interface Capacity {
  /** Sets how live calls are listed. */
  count(live: () => Iterable<Place>): void;
  /**
   * Reserves a place for a call. The result releases it: call it once the call is live or has come
   * to nothing. Null: there is no place.
   */
  hold(assistant: Assistant, words: GivenWords | null): (() => void) | null;
  /** The Fault for a caller that `hold` refused. */
  refusal(): Fault;
  /** A place may have become free: notifies those that wait for one. */
  freed(): void;
  /** The listener is notified whenever a place may have become free. */
  onFreed(listener: () => void): void;
  /** The listener is notified when there is room for calls again, and when there is none left. */
  onRoom(listener: (hasRoom: boolean) => void): void;
  /** Checks for room; called every few seconds, since lateness changes without a call. */
  look(): void;
  /** No more places are given from now on. */
  close(): void;
}

export function createCapacity(options: CapacityOptions): Capacity {
  const { callsMax, isLate, speakersMax, recogniserOf } = options;
  const held = new Set<Place>();
  let live: Parameters<Capacity["count"]>[0] = () => [];
  let isClosed = false;
  const listeners = new Set<() => void>();
  let hadRoom = true;
  let tellRoom: (hasRoom: boolean) => void = () => undefined;
  const isFull = (recogniser: string | null): boolean => {
    const calls = [...live(), ...held];
    if (callsMax !== null ? calls.length >= callsMax : calls.length >= CALLS_MIN && isLate()) {
      return true;
    }
    return recogniser !== null
      && calls.filter((one) => one.recogniser === recogniser).length >= speakersMax(recogniser);
  };
  const look = (): void => {
    const hasRoom = !isClosed && !isFull(null);
    if (hasRoom === hadRoom) return;
    hadRoom = hasRoom;
    tellRoom(hasRoom);
  };
  const freed = (): void => {
    look();
    for (const listener of [...listeners]) listener();
  };
  return {
    count: (calls) => (live = calls),
    hold: (assistant, words) => {
      const recogniser = recogniserOf(assistant, words);
      if (isClosed || isFull(recogniser)) return null;
      const place = { recogniser };
      held.add(place);
      look();
      return () => {
        if (held.delete(place)) freed();
      };
    },
    refusal: () => (isClosed ? restarting() : full()),
    freed,
    onFreed: (listener) => void listeners.add(listener),
    onRoom: (listener) => (tellRoom = listener),
    look,
    close: () => {
      isClosed = true;
      look();
    },
  };
}

/** Does the work while it holds a place; throws Fault 503 when there is none. */
export async function holding<Result>(
  { hold, refusal }: Pick<Capacity, "hold" | "refusal">,
  assistant: Assistant, words: GivenWords | null, work: () => Result | Promise<Result>,
): Promise<Result> {
  const leave = hold(assistant, words);
  if (!leave) throw refusal();
  try {
    return await work();
  } finally {
    leave();
  }
}

function full(): Fault {
  const retryAfterS = LIMITS.capacityRetryS;
  const message = "The server has reached its limit of concurrent calls. "
    + `Try again in ${retryAfterS} seconds.`;
  return new Fault(503, message, { retryAfterS, extra: { retry_after: retryAfterS } });
}
