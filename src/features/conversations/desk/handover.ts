// The desk: people take over conversations, answer in them, hand them back and end them. The rules
// are in desk.ts. Turns belong to conversations.ts, which stops a reply in flight when a person
// takes over.
import type { Assistant } from "#features/assistants/assistants.ts";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import {
  conversationTopic, type AttachmentBody, type Author, type Away, type CommittedEvent,
  type DeskActor, type DeskReason,
} from "#events/events.ts";
import type { Conversations } from "#features/conversations/conversations.ts";
import type { Desk, DeskMove } from "./desk.ts";
import { awayOf } from "./office-hours.ts";
import {
  assertOwned, conversationFull, conversationNotFound, keyReused,
} from "#features/conversations/outcomes.ts";
import type { Conversation, DeskStore, Message, Say } from "#features/conversations/records.ts";

interface HandoverOptions {
  store: DeskStore;
  conversations: Pick<Conversations, "get" | "stop">;
  findAssistant(assistantId: number): Promise<Assistant | null>;
  bus: EventBus;
  system: System;
  messagesMax: number;
}

/** A person of the account acting on one conversation. */
interface Place {
  accountId: number;
  uuid: string;
  author: Author;
}

/** Methods with an account throw Fault 404 when it has no such conversation. */
export interface Handover {
  /** Asks for a person; where one has it already, nothing changes. */
  ask(args: {
    accountId: number; uuid: string; by: DeskActor; reason: DeskReason; note: string | null;
    away?: Away | null;
  }): Promise<Desk>;
  /** Throws Fault 409 where somebody else has it. */
  takeOver(place: Place): Promise<Desk>;
  handBack(place: Place): Promise<Desk>;
  /** Takes the conversation over first if nobody has it. Throws Fault 409 when another has it. */
  say(message: Place & {
    text: string; attachments: AttachmentBody[]; idempotencyKey: string | null;
  }): Promise<{ message: Message; isRepeat: boolean }>;
  end(place: Place): Promise<void>;
  /** Gives it to a person, whoever has it. */
  assign(place: Place, to: Author): Promise<Desk>;
  /** Shows watchers who started or stopped typing; not stored. Null: the visitor. */
  typing(
    place: Omit<Place, "author"> & { author: Author | null }, isTyping: boolean,
  ): Promise<void>;
  /** The AI switch from before the desk existed; off gives it to an unnamed person. */
  setAi(place: Place, enabled: boolean): Promise<void>;
  /** What people have who may no longer answer waits for somebody else. */
  sweep(): Promise<void>;
}

const held = ({ name }: Author): Fault => new Fault(409, `${name} has this conversation.`);
const ifDeleted = (error: unknown): void => {
  if (!(error instanceof Fault && error.status === 404)) throw error;
};
const ifHeld = (error: unknown): void => {
  if (!(error instanceof Fault && error.status === 409)) throw error;
};

function createMove({ store, bus, system }: HandoverOptions) {
  return async (
    { accountId, uuid }: Pick<Place, "accountId" | "uuid">,
    kind: DeskMove,
    rest: {
      by: DeskActor; reason: DeskReason; holder?: Author | null; note?: string | null;
      away?: Away | null | undefined;
    },
  ): Promise<Desk> => {
    const { by, reason, holder = null, note = null, away = null } = rest;
    const outcome = await store.moveDesk(
      { accountId, uuid, move: kind, by, reason, holder, note, away, now: system.now() });
    if (outcome.kind === "not_found") throw conversationNotFound();
    if (outcome.kind === "held") throw held(outcome.holder);
    bus.publishCommitted(outcome.events);
    return outcome.desk;
  };
}

export function createHandover(options: HandoverOptions): Handover {
  const { store, conversations, bus, system } = options;
  const find = async (accountId: number, uuid: string): Promise<Conversation> => {
    const conversation = await conversations.get(uuid);
    assertOwned(conversation, { accountId });
    return conversation;
  };
  const move = createMove(options);
  const operator = (author: Author): DeskActor => ({ role: "operator", ...author });

  /** Makes the change and stops the reply in flight: the assistant is silent from then on. */
  const silenced = async (uuid: string, change: () => Promise<Desk>): Promise<Desk> => {
    await conversations.stop(uuid);
    const desk = await change();
    // A message may have arrived just before the change: its reply is the last one to begin.
    await conversations.stop(uuid);
    return desk;
  };

  const takeOver = async (
    place: Place, { holder }: { holder: Author | null } = { holder: place.author },
  ): Promise<Desk> => {
    const { accountId, uuid, author } = place;
    const { desk: before } = await find(accountId, uuid);
    if (before.holder && before.holder.id !== author.id) throw held(before.holder);
    return silenced(uuid, () =>
      move(place, "take", { by: operator(author), reason: "taken_over", holder }));
  };
  const handBack = ({ author, ...place }: Place): Promise<Desk> =>
    move(place, "hand_back", { by: operator(author), reason: "handed_back" });

  return {
    ask: ({ by, reason, note, away, ...place }) =>
      move(place, "ask", { by, reason, note, away }),
    takeOver: (place) => takeOver(place),
    handBack,
    say: createSay(options, takeOver),
    end: async ({ accountId, uuid, author }) => {
      await find(accountId, uuid);
      await conversations.stop(uuid);
      const events: CommittedEvent[] | null =
        await store.end({ accountId, uuid, by: author, now: system.now() });
      if (!events) throw conversationNotFound();
      bus.publishCommitted(events);
    },
    assign: async (place, to) => {
      await find(place.accountId, place.uuid);
      return silenced(place.uuid, () => move(
        place, "assign", { by: operator(place.author), reason: "assigned", holder: to }));
    },
    typing: async ({ accountId, uuid, author }, isTyping) => {
      await find(accountId, uuid);
      bus.publish(conversationTopic(uuid), {
        kind: "passing", accountId, type: isTyping ? "typing_started" : "typing_ended",
        members: { conversation_id: uuid, by: author ? operator(author) : { role: "visitor" } },
      });
    },
    setAi: async (place, enabled) => {
      const { desk } = await find(place.accountId, place.uuid);
      if (enabled) await handBack(place);
      else if (desk.state !== "person") {
        // Somebody may take it at the same moment: then the assistant is silent, too.
        await takeOver(place, { holder: null }).catch(ifHeld);
      }
    },
    sweep: createSweep(options, move),
  };
}

function createSweep(
  { store, findAssistant, system }: HandoverOptions, move: ReturnType<typeof createMove>,
): Handover["sweep"] {
  const rows = LIMITS.deskSweepRowsMax;
  return async () => {
    for (;;) {
      const abandoned = await store.abandoned({ now: system.now(), rows });
      for (const { assistantId, holder, ...place } of abandoned) {
        const assistant = await findAssistant(assistantId);
        const away = assistant && awayOf(assistant, system.now());
        await move(place, "lose", { by: { role: "rule" }, reason: "lost", holder, away })
          .catch(ifDeleted);
      }
      if (abandoned.length < rows) return;
    }
  };
}

function createSay(
  { store, bus, system, messagesMax }: HandoverOptions, takeOver: Handover["takeOver"],
): Handover["say"] {
  return async (message) => {
    const { accountId, uuid, author } = message;
    const say: Say = { ...message, messagesMax, now: system.now() };
    let outcome = await store.say(say);
    if (outcome.kind === "not_taken") {
      await takeOver({ accountId, uuid, author });
      outcome = await store.say({ ...say, now: system.now() });
    }
    switch (outcome.kind) {
      case "said":
      case "repeated":
        bus.publishCommitted(outcome.events);
        return { message: outcome.message, isRepeat: outcome.kind === "repeated" };
      case "held":
        throw held(outcome.holder);
      case "not_taken":
        throw new Fault(409, "The conversation was handed back while you wrote.");
      case "key_reused":
        throw keyReused(null);
      case "conversation_full":
        throw conversationFull();
      case "not_found":
        throw conversationNotFound();
    }
  };
}
