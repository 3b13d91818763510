// Drives one turn to its end: gathers its material, asks the model under the turn's deadline and
// passes the events on. Text conversations and calls are answered through this; what they do with
// the events, and with a failure, is up to them.
import type { System } from "#core/system.ts";
import type { LanguageModel } from "#providers/models/port.ts";
import type { TurnFunctions } from "./functions.ts";
import { buildMessages } from "./prompt.ts";
import { runTurn, type TurnEvent } from "./turn.ts";

export interface TurnLimits {
  turnTotalMs: number;
  replyTokensMax: number;
  historyTokensMax: number;
}

/** Everything one turn is answered from. */
export interface TurnMaterial
  extends Omit<Parameters<typeof buildMessages>[0], "historyTokensMax"> {
  model: LanguageModel;
  functions: TurnFunctions;
  temperature: number;
  /** Null: as many as the limits allow. */
  tokensMax: number | null;
}

type Receive = (event: TurnEvent) => void;

interface DrivenTurn {
  /** Its time counts against the turn's deadline. */
  gather(): Promise<TurnMaterial>;
  /**
   * Receives the events, in order and at once. A promise of it when the model is asked before its
   * reply may take effect: until it resolves, nothing is shown and no function is called.
   */
  receiver: Receive | Promise<Receive>;
  /** Aborted by the deadline, or by a caller that no longer wants the reply. */
  abort: AbortController;
  limits: TurnLimits;
  system: System;
}

/** Resolves once the model has answered or a bound is reached; rejects with what went wrong. */
export async function driveTurn(driven: DrivenTurn): Promise<void> {
  const { gather, abort, limits, system } = driven;
  const deadline = system.after(limits.turnTotalMs, () =>
    abort.abort(new Error("the reply took too long")));
  try {
    const { model, functions, temperature, tokensMax, ...asked } = await gather();
    const turn = runTurn({
      model,
      functions,
      messages: buildMessages({ ...asked, historyTokensMax: limits.historyTokensMax }),
      temperature,
      tokensMax: Math.min(tokensMax ?? Infinity, limits.replyTokensMax),
      signal: abort.signal,
    });
    let receive: Receive | null = null;
    for await (const events of turn) {
      receive ??= await driven.receiver;
      for (const event of events) receive(event);
    }
  } finally {
    deadline.cancel();
  }
}
