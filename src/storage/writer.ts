// The port through which every write goes; an engine implements it.
import type { StorageFailure } from "#core/faults.ts";
import type { AllCommands } from "./commands.ts";

type Given<Name extends keyof AllCommands> = Parameters<AllCommands[Name]>[0];
/** What a caller gives: `nodeId` comes by itself. */
type WithoutNode<Args> = Args extends { nodeId: number } ? Omit<Args, "nodeId"> : Args;
export type ArgsOf<Name extends keyof AllCommands> = WithoutNode<Given<Name>>;
export type ResultOf<Name extends keyof AllCommands> = Awaited<ReturnType<AllCommands[Name]>>;

/** Ends of what has begun: nobody asks for them again, so they wait for a storage that is away. */
export const PATIENT: ReadonlySet<keyof AllCommands> = new Set([
  "turns.complete", "turns.fail", "calls.addTranscript", "calls.addTransfer", "calls.change",
  "calls.end", "calls.failTransfer", "calls.finish", "calls.stepTransfer", "tools.finishCall",
  "campaigns.settle", "webhooks.record",
]);

export interface Writer {
  /**
   * Runs one command; resolves after its commit is durable. Rejects with what the command threw, or
   * with StorageFailure when the disk failed, or had no room for what is not PATIENT: then nothing
   * happened, and after a failure nothing will from here on.
   */
  write<Name extends keyof AllCommands>(
    name: Name,
    args: ArgsOf<Name>,
  ): Promise<ResultOf<Name>>;
  /** Null while commits succeed; the reason once the disk has failed. */
  failure(): StorageFailure | null;
  /** Whether the disk took nothing of what it was last asked to: failed, or without room. */
  isRefusing(): boolean;
  /** Waits for what is queued, checkpoints, closes. Idempotent. */
  close(): Promise<void>;
}

/** Commands that own what they begin, or end what is owned, do so as this node. */
export const writingAs = (nodeId: () => number, writer: Writer): Writer => ({
  ...writer,
  write: (name, args) => writer.write(name, { ...args, nodeId: nodeId() }),
});
