// How many calls this server takes: as many as its recogniser follows, and as many as it was told
// to, or, where it was not, until sound comes late. Asked before a call has a record or is
// answered, by everything that begins one.
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault, restarting } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { GivenWords, VoiceChoice } from "./voice-choice.ts";

/** A frame this late is heard as a gap by telephones with a usual jitter buffer. */
const LATE_MS = 40;
/** This share of late ticks is too much: 99 % have to be in time. */
const LATE_SHARE = 0.01;
/** The seconds looked at, each of which has to be late: a single stall is no load. */
const SECONDS = 5;
const TICKS_MIN = 20;
/** Fewer calls than this are not what makes a machine late. */
const CALLS_MIN = 8;

interface Lateness {
  observe(lateMs: number): void;
  /** For some seconds, up to now, sound has come late. */
  isLate(): boolean;
}

/** From how late each tick of the media clock came. */
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
  /** Speakers the recogniser of that code follows at a time. */
  speakersMax(recogniser: string): number;
}

/** What a call takes up; `recogniser`: the code of the one it needs, null: none. */
interface Place {
  recogniser: string | null;
}

export interface Capacity {
  /** The calls there are. */
  count(live: () => Iterable<Place>): void;
  /**
   * Keeps a place for a call until it is live or came to nothing: whoever asked says so by the
   * function. Null: there is none.
   */
  hold(assistant: Assistant, words: GivenWords | null): (() => void) | null;
  /** Why there is none, for whoever was refused. */
  refusal(): Fault;
  /** A place may have come free, and whoever waits for one looks again. */
  freed(): void;
  /** The listener is notified of each. */
  onFreed(listener: () => void): void;
  /** The listener is notified each time there is a place for calls again, or none any more. */
  onRoom(listener: (hasRoom: boolean) => void): void;
  /** Lateness comes and goes without a call: to be called every few seconds. */
  look(): void;
  /** From now on there is no place for anybody. */
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

/** Does the work with a place held; throws Fault 503 where there is none. */
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
  const message = "The server has as many calls as it can serve. "
    + `Try again in ${retryAfterS} seconds.`;
  return new Fault(503, message, { retryAfterS, extra: { retry_after: retryAfterS } });
}
