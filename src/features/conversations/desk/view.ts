// The visitor's view of the desk: the place in line, and the face of who answers. Store port →
// factory. Called by view-routes.ts.
import type { Author } from "#events/events.ts";
import type { Conversation } from "#features/conversations/records.ts";

export interface DeskViewStore {
  /** From 1: how many wait for a person of the account up to this one. */
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
