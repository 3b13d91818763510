// Calls that hosted carriers deliver, while a node answers or has them: a carrier's retry may reach
// any node, and gets the first answer there too. Made in app/hosted-carriers.ts.
import { hash } from "node:crypto";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { OfferReply, SharedOffers } from "./cluster.ts";
import { createQuestions } from "./questions.ts";
import { WireFault, type Wire } from "./wire.ts";

/** Asked of the node that answers the call. */
type OfferFamily = { reply: { body: object; answer: OfferReply } };

/** Hashed, because a carrier's ids may hold any characters. */
const subjectOf = (key: string): string => hash("sha256", key);

export function shareOffers({ wire, log }: { wire: Wire; log: Logger }): SharedOffers {
  const questions = createQuestions<OfferFamily>({
    of: "offer", waitMs: { reply: LIMITS.askPlaceMs }, wire, log,
  });
  return {
    find: async (key) => {
      try {
        return await questions.ask(subjectOf(key), "reply", {});
      } catch (error) {
        // The call's record decides then.
        if (error instanceof WireFault) return null;
        throw error;
      }
    },
    take: (key, reply) => questions.answer(subjectOf(key), { reply: () => reply }),
  };
}
