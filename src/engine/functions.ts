// What a model may call in one turn: sources of functions, joined for the turn. A feature that has
// functions is a source; turn.ts calls what is joined here.
import type { FunctionCall } from "#events/events.ts";
import type { ModelFunction } from "#providers/models/port.ts";

export interface FunctionRequest {
  /** Stable per call of the turn: the same id is the same effect. */
  callId: string;
  name: string;
  arguments: Record<string, unknown>;
}

/** Functions of one kind. */
export interface FunctionSource {
  /** May be empty: then nothing is called. */
  readonly offered: readonly ModelFunction[];
  /**
   * Resolves to what the model and the client read; failures of an endpoint are results too. Takes
   * only names that are offered. A call with an external effect is journaled before it is sent.
   */
  call(request: FunctionRequest): Promise<FunctionCall["result"]>;
}

/** All functions of one turn. */
export interface TurnFunctions {
  readonly offered: ModelFunction[];
  /** Takes any name. Rejects only when the signal aborts. */
  call(request: FunctionRequest, signal: AbortSignal): Promise<FunctionCall["result"]>;
}

export const NO_FUNCTIONS: FunctionSource = { offered: [], call: () => Promise.resolve({}) };

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });

/** When two functions share a name, the first source's wins. */
export function joinFunctions(sources: readonly FunctionSource[]): TurnFunctions {
  const owners = new Map<string, FunctionSource>();
  const offered: ModelFunction[] = [];
  for (const source of sources) {
    for (const one of source.offered) {
      if (owners.has(one.name)) continue;
      owners.set(one.name, source);
      offered.push(one);
    }
  }
  return {
    offered,
    call: async (request, signal) => {
      const owner = owners.get(request.name);
      if (!owner) return { error: `There is no function named ${request.name}.` };
      // A turn that is over stops waiting; what was sent is finished and journaled all the same.
      return Promise.race([owner.call(request), aborted(signal)]);
    },
  };
}
