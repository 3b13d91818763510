// The port through which every write goes; an engine implements it.
import type { StorageFailure } from "#core/faults.ts";

/** What a caller passes: `nodeId` is filled in by `writingAs`. */
type WithoutNode<Args extends object> = Args extends { nodeId: number } ? Omit<Args, "nodeId"> : Args;
export type ArgsOf<Commands, Name extends keyof Commands> =
  Commands[Name] extends (args: infer Args extends object) => unknown ? WithoutNode<Args> : never;
export type ResultOf<Commands, Name extends keyof Commands> =
  Commands[Name] extends (args: never) => infer Result ? Awaited<Result> : never;

/**
 * `Commands`: those that may be asked for. A writer of more commands serves wherever some of them
 * are needed.
 */
export interface Writer<Commands> {
  /**
   * Runs one command; resolves after its commit is durable. Rejects with what the command threw, or
   * with StorageFailure when the disk failed, or was full and the command is not PATIENT: then
   * nothing happened, and after a failure nothing more is written.
   */
  write<Name extends keyof Commands>(
    name: Name,
    args: ArgsOf<Commands, Name>,
  ): Promise<ResultOf<Commands, Name>>;
  /** Null while commits succeed; the reason once the disk has failed. */
  failure(): StorageFailure | null;
  /** Whether the disk refused the last write: it failed, or is full. */
  isRefusing(): boolean;
  /** Waits for queued commands, checkpoints, closes. Idempotent. */
  close(): Promise<void>;
}

/** The writer that a store needs for the commands this function makes. */
export type WriterOf<Make extends (...args: never) => unknown> = Writer<ReturnType<Make>>;

/** Adds this node's id to commands that own what they begin, or that end what a node owns. */
export const writingAs = <Commands>(
  nodeId: () => number, writer: Writer<Commands>,
): Writer<Commands> => ({
  ...writer,
  write: (name, args) => writer.write(name, { ...args, nodeId: nodeId() }),
});

type MethodsOf<Commands, Feature extends string> = {
  [Name in keyof Commands]: Name extends `${Feature}.${infer Method}` ? Method : never;
}[keyof Commands];

/** The methods of a store that only pass on to the commands of the same names. */
export function writes<
  Commands, Feature extends string, Method extends MethodsOf<Commands, Feature>,
>(writer: Writer<Commands>, feature: Feature, ...methods: Method[]) {
  type Named<One extends string> = `${Feature}.${One}` & keyof Commands;
  type Write<Name extends keyof Commands> =
    (args: ArgsOf<Commands, Name>) => Promise<ResultOf<Commands, Name>>;
  const write = (name: Named<Method>): Write<typeof name> => (args) => writer.write(name, args);
  return Object.fromEntries(
    methods.map((method) => [method, write(`${feature}.${method}` as Named<Method>)]),
  ) as { [One in Method]: Write<Named<One>> };
}
