// A reply that is asked for while the customer may still go on: until it is heard no function is
// called for it, and what it cost is counted when it never is. Made by replies.ts.
import type { TurnFunctions } from "#engine/functions.ts";
import type { TurnEvent } from "#engine/turn.ts";

/** For models that do not say what they used of a reply that was broken off. */
const CHARS_PER_TOKEN = 4;

export interface Early {
  /** It is being heard. */
  goAhead(): void;
  /** Runs once it is heard, in the order it was asked for; never when it is not. */
  whenHeard(run: () => void): void;
  /** The same functions, none of which is called before. */
  holdBack(functions: TurnFunctions): TurnFunctions;
  count(event: TurnEvent): void;
  /** Runs once it is known whether it is heard. */
  onSettled(run: (outcome: "heard" | "dropped", tokens: number) => void): void;
}

export function createEarly(signal: AbortSignal): Early {
  const { promise: heard, resolve, reject } = Promise.withResolvers<void>();
  let chars = 0;
  let tokens = 0;
  // Whoever waits for it has this told by the turn itself.
  heard.catch(() => undefined);
  signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  return {
    goAhead: resolve,
    whenHeard: (run) => void heard.then(run, () => undefined),
    holdBack: ({ offered, call }) => ({
      offered,
      call: async (request, turnSignal) => {
        await heard;
        return call(request, turnSignal);
      },
    }),
    count: (event) => {
      if (event.kind === "text") chars += event.text.length;
      if (event.kind === "usage") tokens += event.usage.inputTokens + event.usage.outputTokens;
    },
    onSettled: (run) => void heard.then(
      () => run("heard", 0),
      () => run("dropped", tokens === 0 ? Math.ceil(chars / CHARS_PER_TOKEN) : tokens)),
  };
}
