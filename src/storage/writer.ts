// The port through which every write goes; an engine implements it.
import type { StorageFailure } from "#core/faults.ts";
import type { AllCommands } from "./commands.ts";

export type ArgsOf<Name extends keyof AllCommands> = Parameters<AllCommands[Name]>[0];
type ResultOf<Name extends keyof AllCommands> = Awaited<ReturnType<AllCommands[Name]>>;

export interface Writer {
  /**
   * Runs one command; resolves after its commit is durable. Rejects with what the command threw, or
   * with StorageFailure when the disk failed: then nothing happened and nothing will from here on.
   */
  write<Name extends keyof AllCommands>(
    name: Name,
    args: ArgsOf<Name>,
  ): Promise<ResultOf<Name>>;
  /** Null while commits succeed; the reason once the disk has failed. */
  failure(): StorageFailure | null;
  /** Waits for what is queued, checkpoints, closes. Idempotent. */
  close(): Promise<void>;
}
