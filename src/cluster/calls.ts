// Lets clients of this node control, or listen in on, calls that another node has: requests are
// routed to that node, its sound comes back frame by frame. Made in app/calls.ts.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import type { OnAudio, OwnPersons, SharedCalls } from "./cluster.ts";
import { createMicrophones, ownPersonsAlone, sharePersons, type PersonFamily } from "./persons.ts";
import { createQuestions, reaching } from "./questions.ts";
import { hearThere, sendFrame, sendOver } from "./remote-sound.ts";
import type { Wire } from "./wire.ts";

/** The calls this node has. */
interface OwnCalls {
  control: {
    say(callId: number, text: string): boolean;
    mute(callId: number, on: boolean): boolean;
    end(callId: number): Promise<boolean>;
  };
  listen(callId: number, onAudio: OnAudio, over: () => void): (() => void) | null;
  persons: OwnPersons;
}

interface SharedCallsOptions {
  own: OwnCalls;
  /** Whether another node has the call. Only then is it asked: it may be out of reach. */
  isElsewhere(callId: number): Promise<boolean>;
  wire: Wire;
  system: System;
  log: Logger;
}

/** Questions to the node that has a call; answered with false or null when it is not live. */
type CallFamily = PersonFamily & {
  say: { body: { text: string }; answer: boolean };
  mute: { body: { on: boolean }; answer: boolean };
  end: { body: object; answer: boolean };
  /** Has the call's sound sent for a while; asking again extends it. */
  listen: { body: object; answer: { rate: number } | null };
};

const WAIT_MS = {
  say: LIMITS.askMs, mute: LIMITS.askMs, listen: LIMITS.askMs, end: LIMITS.askEndMs,
  whisper: LIMITS.askMs, take_over: LIMITS.askMs, hand_back: LIMITS.askMs, speak: LIMITS.askMs,
};

const subjectOf = (callId: number): string => `pcm.${callId}`;
const HAS = "has the call";

/** The implementation for a server without other nodes. */
export const ownCallsAlone = ({ control, listen, persons }: OwnCalls): SharedCalls => ({
  persons: ownPersonsAlone(persons),
  say: async (callId, text) => control.say(callId, text),
  mute: async (callId, on) => control.mute(callId, on),
  end: control.end,
  listen: async (...args) => listen(...args),
});

/** `offer`: this node has the call from now on, until the result is called. */
export function shareCalls(
  options: SharedCallsOptions,
): SharedCalls & { offer(callId: number): () => void } {
  const { own: { control, listen, persons }, wire, system, log } = options;
  const questions = createQuestions<CallFamily>({ of: "call", waitMs: WAIT_MS, wire, log });
  const ask = async <Kind extends keyof CallFamily>(
    callId: number, kind: Kind, body: CallFamily[Kind]["body"],
  ): Promise<CallFamily[Kind]["answer"] | null> => await options.isElsewhere(callId)
    ? reaching(HAS, questions.ask(String(callId), kind, body)) : null;
  return {
    persons: sharePersons({ own: persons, wire, system }, ask),
    say: async (callId, text) => control.say(callId, text)
      || await ask(callId, "say", { text }) === true,
    mute: async (callId, on) => control.mute(callId, on)
      || await ask(callId, "mute", { on }) === true,
    end: async (callId) => await control.end(callId)
      || await ask(callId, "end", {}) === true,
    listen: async (callId, onAudio, over) => {
      const stop = listen(callId, onAudio, over);
      if (stop) return stop;
      const known = await ask(callId, "listen", {});
      return known && hearThere({
        wire, system, subject: subjectOf(callId),
        again: async () => await ask(callId, "listen", {}) !== null,
      }, (pcm) => onAudio(pcm, known.rate), over).end;
    },
    offer: (callId) => {
      const sound = createSound(options, callId);
      const microphones = createMicrophones({ own: persons, wire, system }, callId);
      const end = questions.answer(String(callId), {
        say: async ({ text }) => control.say(callId, text),
        mute: async ({ on }) => control.mute(callId, on),
        end: () => control.end(callId),
        listen: sound.send,
        whisper: ({ by, text }) => persons.whisper(callId, by, text),
        take_over: ({ by, isAlone }) => persons.takeOver(callId, by, isAlone),
        hand_back: ({ by }) => persons.handBack(callId, by),
        speak: microphones.speak,
      });
      return () => {
        end();
        sound.end();
        microphones.end();
      };
    },
  };
}

/** Sends the sound of a call that this node has to other nodes, for a while after each request. */
function createSound({ own, wire, system }: SharedCallsOptions, callId: number) {
  let sending: { stop(): void; timer: Timer; rate: Promise<number> } | null = null;
  const end = (): void => {
    sending?.timer.cancel();
    sending?.stop();
    sending = null;
  };
  const endLater = (): Timer => system.after(LIMITS.liveSentMs, end);
  return {
    send: async (): Promise<{ rate: number } | null> => {
      if (sending) {
        sending.timer.cancel();
        sending.timer = endLater();
        return { rate: await sending.rate };
      }
      const first = Promise.withResolvers<number>();
      const stop = own.listen(callId, (pcm, rate) => {
        first.resolve(rate);
        sendFrame(wire, subjectOf(callId), pcm);
      }, () => sendOver(wire, subjectOf(callId)));
      if (!stop) return null;
      sending = { stop, timer: endLater(), rate: first.promise };
      return { rate: await first.promise };
    },
    end,
  };
}
