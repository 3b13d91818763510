// People who take part in calls of another node: their actions are requested from the node that has
// the call; what they say and what they hear is sent frame by frame. Part of calls.ts.
import { LIMITS } from "#core/limits.ts";
import type { System, Timer } from "#core/system.ts";
import type { Author } from "#events/events.ts";
import type { CallDeskOutcome, OwnPersons, SharedPersons, Speaking } from "./cluster.ts";
import { hearFrames, hearThere, sendFrame, sendOver } from "./remote-sound.ts";
import type { Wire } from "./wire.ts";

/** Questions to the node that has a call; answered with null or false when it is not live. */
export type PersonFamily = {
  whisper: { body: { by: Author; text: string }; answer: boolean };
  take_over: { body: { by: Author; isAlone: boolean }; answer: CallDeskOutcome };
  hand_back: { body: { by: Author }; answer: CallDeskOutcome };
  /** Opens the microphone that `session` identifies, or keeps it open, for a while. */
  speak: {
    body: { authorId: string; session: string }; answer: "speaking" | "not_theirs" | null;
  };
};

type Ask = <Kind extends keyof PersonFamily>(
  callId: number, kind: Kind, body: PersonFamily[Kind]["body"],
) => Promise<PersonFamily[Kind]["answer"] | null>;

const NOT_LIVE: CallDeskOutcome = { kind: "not_live" };
const saidOn = (session: string): string => `mic.said.${session}`;
const heardOn = (session: string): string => `mic.heard.${session}`;

/** The implementation for a server without other nodes. */
export const ownPersonsAlone = (own: OwnPersons): SharedPersons => ({
  ...own,
  speak: async (...args) => own.speak(...args),
});

export function sharePersons(
  { own, wire, system }: { own: OwnPersons; wire: Wire; system: System }, ask: Ask,
): SharedPersons {
  const elsewhere = async (
    outcome: CallDeskOutcome, asked: () => Promise<CallDeskOutcome | null>,
  ): Promise<CallDeskOutcome> =>
    outcome.kind === "not_live" ? await asked() ?? NOT_LIVE : outcome;
  return {
    whisper: async (callId, by, text) => await own.whisper(callId, by, text)
      || await ask(callId, "whisper", { by, text }) === true,
    takeOver: async (callId, by, isAlone) => elsewhere(
      await own.takeOver(callId, by, isAlone), () => ask(callId, "take_over", { by, isAlone })),
    handBack: async (callId, by) => elsewhere(
      await own.handBack(callId, by), () => ask(callId, "hand_back", { by })),
    speak: async (callId, authorId, onAudio, over) => {
      const here = own.speak(callId, authorId, onAudio, over);
      if (here !== null) return here;
      const session = system.uuid();
      const again = () => ask(callId, "speak", { authorId, session });
      const known = await again();
      return known === "speaking" ? speakThere({ wire, system, session, again }, onAudio, over) : known;
    },
  };
}

/** Speaks from a microphone at this node in a call of another node. */
function speakThere(
  { wire, system, session, again }: {
    wire: Wire; system: System; session: string; again(): Promise<string | null>;
  },
  onAudio: (pcm: Int16Array) => void, over: () => void,
): Speaking {
  const there = hearThere({
    wire, system, subject: heardOn(session), again: async () => await again() === "speaking",
  }, onAudio, over);
  return {
    write: (pcm) => {
      if (!there.isOver()) sendFrame(wire, saidOn(session), pcm);
    },
    close: () => {
      if (there.isOver()) return;
      there.end();
      sendOver(wire, saidOn(session));
    },
  };
}

/** Microphones of other nodes in a call that this node has. */
export function createMicrophones(
  { own, wire, system }: { own: Pick<OwnPersons, "speak">; wire: Wire; system: System },
  callId: number,
) {
  const open = new Map<string, { close(): void; timer: Timer }>();
  const close = (session: string): void => {
    open.get(session)?.close();
    open.delete(session);
  };
  const closeLater = (session: string): Timer =>
    system.after(LIMITS.liveSentMs, () => close(session));
  return {
    speak: async (
      { authorId, session }: PersonFamily["speak"]["body"],
    ): Promise<PersonFamily["speak"]["answer"]> => {
      const known = open.get(session);
      if (known) {
        known.timer.cancel();
        known.timer = closeLater(session);
        return "speaking";
      }
      const speaking = own.speak(callId, authorId,
        (pcm) => sendFrame(wire, heardOn(session), pcm),
        () => {
          sendOver(wire, heardOn(session));
          close(session);
        });
      if (speaking === null || speaking === "not_theirs") return speaking;
      const unsubscribe = hearFrames(
        wire, saidOn(session), (pcm) => speaking.write(pcm), () => close(session));
      const timer = closeLater(session);
      open.set(session, {
        timer,
        close: () => {
          open.get(session)?.timer.cancel();
          unsubscribe();
          speaking.close();
        },
      });
      return "speaking";
    },
    end: (): void => [...open.keys()].forEach(close),
  };
}
