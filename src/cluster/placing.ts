// Calls that only one node can place: telephone systems accept an extension's calls only from the
// node registered for it. That node is asked, and refuses in its own words. Made in app/mount.ts.
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { createQuestions, reaching } from "./questions.ts";
import type { Wire } from "./wire.ts";

type Refused = Pick<Fault, "status" | "message" | "code" | "errors" | "retryAfterS" | "extra">;
type PlaceFamily<Asked extends object, Placed extends object> = {
  place: { body: Asked; answer: { placed: Placed } | { refused: Refused } };
};

interface SharedPlacing<Asked, Placed> {
  /** Throws the Fault the other node refuses with, or Fault 503 when it is out of reach. */
  at(nodeId: number, asked: Asked): Promise<Placed>;
}

/** `place` places the call at this node; a Fault it throws is thrown at the node that asked. */
export function sharePlacing<Asked extends object, Placed extends object>(
  { nodeId, wire, log }: { nodeId: number; wire: Wire; log: Logger },
  place: (asked: Asked) => Promise<Placed>,
): SharedPlacing<Asked, Placed> {
  const questions = createQuestions<PlaceFamily<Asked, Placed>>({
    of: "places", waitMs: { place: LIMITS.askPlaceMs }, wire, log,
  });
  questions.answer(String(nodeId), {
    place: async (asked) => {
      try {
        return { placed: await place(asked) };
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        const { status, message, code, errors, retryAfterS, extra } = error;
        return { refused: { status, message, code, errors, retryAfterS, extra } };
      }
    },
  });
  return {
    at: async (owner, asked) => {
      const answer = await reaching(
        "is registered for the number", questions.ask(String(owner), "place", asked));
      if (answer && "placed" in answer) return answer.placed;
      const { status, message, ...details } = answer?.refused ?? {
        status: 503, message: "No server is registered for the number at the moment.",
        retryAfterS: LIMITS.capacityRetryS,
      };
      throw new Fault(status, message, details);
    },
  };
}
