// The work after a call that is over: its recording is kept and it is evaluated, then it is
// finished. What is due is in the database, so that a crash or a database that is out of reach only
// delays it. Called by calling.ts and ending.ts.
import { StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { createLooks } from "#core/looks.ts";
import { wait } from "#core/system.ts";
import { legRecordingsOf } from "./records/transfers.ts";
import type { CallingOptions } from "./live-call.ts";
import type { Call } from "./records/records.ts";

export interface AfterCall {
  /** Finishes the call; joins the work that is already under way for it. */
  finish(callId: number): Promise<void>;
  /** Looks for calls that are due and not being finished, and finishes them one after another. */
  look(): void;
  /** Aborts evaluations under way; the next start or another node makes them. */
  leave(): void;
}

export function createAfterCall(options: CallingOptions): AfterCall {
  const { toFinish, system, log } = options;
  const working = new Map<number, Promise<void>>();
  const leaving = new AbortController();
  const finish = (callId: number): Promise<void> => {
    const known = working.get(callId);
    if (known) return known;
    const work = finishCall(options, callId, leaving.signal).then(
      () => void working.delete(callId),
      (error: unknown) => {
        // Any other failure would repeat, at the price of another evaluation.
        if (error instanceof StorageFailure) working.delete(callId);
        throw error;
      });
    working.set(callId, work);
    return work;
  };
  const looks = createLooks(async () => {
    for (const callId of await toFinish(system.now())) {
      if (working.has(callId)) continue;
      await finish(callId).catch((error: unknown) =>
        log.error({ err: error, call_id: callId }, "could not finish an ended call"));
    }
  }, log, "looking up ended calls");
  return { finish, look: looks.ask, leave: () => leaving.abort() };
}

/** A failed evaluation is recorded, and the call is finished all the same. */
async function finishCall(
  options: CallingOptions, callId: number, signal: AbortSignal,
): Promise<void> {
  const { calls, findAssistant, evaluate, system } = options;
  const call = await calls.findById(callId);
  // It may have been finished meanwhile.
  if (call?.status !== "ended") return;
  // A client told that the call is over can play the recording, at any node.
  const kept = Promise.race([keepAll(options, call), wait(system, LIMITS.recordingPutMs)]);
  const assistant = await findAssistant(call.accountId, call.assistantId);
  const { values, error } = assistant
    ? await evaluate(assistant, await calls.transcript(callId), signal)
    : { values: {}, error: "The assistant was deleted." };
  // An aborted evaluation is still due.
  if (signal.aborted) return;
  await kept;
  await calls.finish(call, { evaluation: values, evaluationError: error });
}

/**
 * Keeps its recording and those of its legs; a leg's that was not closed is repaired first. Where
 * nothing of the call itself was recorded, its legs' are removed: no link and no retention would
 * find them.
 */
export async function keepAll(
  { recordings }: Pick<CallingOptions, "recordings">, { recordingFile, transfers }: Call,
): Promise<void> {
  if (recordingFile !== null) await recordings.keep(recordingFile);
  for (const leg of legRecordingsOf(transfers)) {
    if (recordingFile === null) await recordings.remove(leg);
    else if (await recordings.repair(leg)) await recordings.keep(leg);
  }
}
