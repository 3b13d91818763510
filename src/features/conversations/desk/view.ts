// The visitor's view of the desk: the place in the queue, and the picture of the person who
// answers. Store port → factory. Called by view-routes.ts.
import type { Author } from "#events/events.ts";
import type { Conversation } from "#features/conversations/records.ts";

export interface DeskViewStore {
  /** Place in the account's queue of waiting conversations, from 1. */
  placeOf(conversation: Pick<Conversation, "id" | "accountId">): Promise<number>;
  /** A data URL. */
  avatarOf(accountId: number, person: string): Promise<string | null>;
  /** Null takes it away. */
  setAvatar(args: { accountId: number; person: string; image: string | null }): Promise<void>;
}

export function createDeskView({ store }: { store: DeskViewStore }) {
  return {
    avatarOf: store.avatarOf,
    setAvatar: store.setAvatar,
    of: async (
      conversation: Conversation,
    ): Promise<{ place: number | null; holder: (Author & { avatar: string | null }) | null }> => {
      const { desk: { state, holder }, accountId } = conversation;
      return {
        place: state === "waiting" ? await store.placeOf(conversation) : null,
        holder: holder && { ...holder, avatar: await store.avatarOf(accountId, holder.id) },
      };
    },
  };
}

export type DeskView = ReturnType<typeof createDeskView>;
