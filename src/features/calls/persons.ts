// What people of the account do in live calls of this node: whisper to the assistant, take the call
// over, speak in it, hand it back. The store decides who has a call, the media thread has the
// sound. Part of calling.ts.
import type { CallDeskOutcome, OwnPersons } from "#cluster/cluster.ts";
import { LIMITS } from "#core/limits.ts";
import type { Author, DeskReason } from "#events/events.ts";
import { colleagueSaid, keepUntold, whispered } from "./colleagues.ts";
import { remember, rememberColleague } from "./history.ts";
import type { CallingOptions, Holding, LiveCall } from "./live-call.ts";
import type { Said } from "./voice/brain.ts";

/** Removes the person from a call, when it ends or goes back to the assistant. */
export function dismiss(call: LiveCall): void {
  const { person } = call;
  call.person = null;
  person?.absence?.cancel();
  person?.microphone?.over();
}

/** Records what a person said, and adds it to what the model reads. */
export function operatorSaid(
  calls: CallingOptions["calls"], call: LiveCall,
  { author = { id: "", name: "" }, text, startMs, endMs, interrupted }: Said,
): Promise<void> {
  const speaker = "operator";
  call.saidMs = endMs;
  call.hasColleagues = true;
  if (text !== "") call.face?.transcript(speaker, text, true);
  const line = colleagueSaid(author, text);
  rememberColleague(call.history, line);
  keepUntold(call, line);
  return calls.addTranscript(
    call, { speaker, author, text, startMs, endMs, interrupted, functionCalls: [] });
}

function createHandBack({ calls, media }: CallingOptions) {
  return async (
    call: LiveCall, by: Author, reason: Extract<DeskReason, "handed_back" | "lost">,
  ): Promise<CallDeskOutcome> => {
    const actor = reason === "lost"
      ? { role: "rule" } as const : { role: "operator", ...by } as const;
    const outcome = await calls.moveDesk(
      call, { move: "hand_back", by: actor, reason, holder: null });
    if (call.person && outcome.kind === "moved" && outcome.desk.state === "assistant") {
      dismiss(call);
      media.send({ kind: "person_left", callId: call.id, wasLost: reason === "lost" });
    }
    return outcome;
  };
}

export function createPersons(
  options: CallingOptions, answered: (callId: number) => LiveCall | null,
): OwnPersons {
  const { calls, media, log } = options;
  const handBack = createHandBack(options);
  const watchAbsence = (call: LiveCall, person: Holding): void => {
    person.absence?.cancel();
    person.absence = options.system.after(LIMITS.personGoneMs, () => {
      if (call.person !== person || call.isOver) return;
      handBack(call, person.author, "lost").catch((error: unknown) =>
        log.error({ err: error, call_id: call.id }, "could not hand a call back"));
    });
  };
  return {
    whisper: async (callId, by, text) => {
      const call = answered(callId);
      if (!call || !await calls.whisper(call, by, text)) return false;
      const line = whispered(by, text);
      remember(call.history, "user", line);
      keepUntold(call, line);
      call.hasColleagues = true;
      media.send({ kind: "hint", callId });
      return true;
    },
    takeOver: async (callId, by, isAlone) => {
      const call = answered(callId);
      if (!call) return { kind: "not_live" };
      const outcome = await calls.moveDesk(call, {
        move: "take", by: { role: "operator", ...by }, reason: "taken_over", holder: by,
      });
      if (outcome.kind !== "moved" || call.isOver) return outcome;
      const person = call.person ?? { author: by, isAlone, microphone: null, absence: null };
      person.isAlone = isAlone;
      call.person = person;
      media.send({
        kind: "person_joined", callId, author: by, isAlone,
        ears: call.recogniser ?? options.recogniserOf(call.assistant, null),
      });
      if (!person.microphone) watchAbsence(call, person);
      return outcome;
    },
    handBack: async (callId, by) => {
      const call = answered(callId);
      return call ? handBack(call, by, "handed_back") : { kind: "not_live" };
    },
    speak: (callId, authorId, onAudio, over) => {
      const call = answered(callId);
      if (!call) return null;
      const { person } = call;
      if (person?.author.id !== authorId) return "not_theirs";
      const microphone = { onAudio, over };
      // They may have reconnected before the loss of their old connection was noticed.
      person.microphone?.over();
      person.microphone = microphone;
      person.absence?.cancel();
      const isOn = (): boolean => call.person === person && person.microphone === microphone;
      return {
        write: (pcm) => {
          if (isOn()) media.send({ kind: "person_audio", callId, pcm });
        },
        close: () => {
          if (!isOn()) return;
          person.microphone = null;
          watchAbsence(call, person);
        },
      };
    },
  };
}
