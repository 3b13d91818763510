// A reply that is requested while the customer may still go on: no function is called for it until
// it is heard, and its tokens are counted when it is dropped. Made by replies.ts.
import type { TurnFunctions } from "#engine/functions.ts";
import type { TurnEvent } from "#engine/turn.ts";

/** An estimate for models that report no usage for an aborted reply. */
const CHARS_PER_TOKEN = 4;

export interface Early {
  /** Called when the reply begins to be heard. */
  goAhead(): void;
  /** Runs each once the reply is heard, in the order of the calls; never if it is dropped. */
  whenHeard(run: () => void): void;
  /** The same functions; calls wait until the reply is heard. */
  holdBack(functions: TurnFunctions): TurnFunctions;
  count(event: TurnEvent): void;
  /** Runs once it is known whether the reply is heard or dropped. */
  onSettled(run: (outcome: "heard" | "dropped", tokens: number) => void): void;
}

export function createEarly(signal: AbortSignal): Early {
  const { promise: heard, resolve, reject } = Promise.withResolvers<void>();
  let chars = 0;
  let tokens = 0;
  // The turn itself reports the abort to those who wait for it.
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
