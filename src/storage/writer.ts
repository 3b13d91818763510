// The port through which every write goes; an engine implements it.
import type { StorageFailure } from "#core/faults.ts";

/** What a caller gives: `nodeId` comes by itself. */
type WithoutNode<Args extends object> = Args extends { nodeId: number } ? Omit<Args, "nodeId"> : Args;
export type ArgsOf<Commands, Name extends keyof Commands> =
  Commands[Name] extends (args: infer Args extends object) => unknown ? WithoutNode<Args> : never;
export type ResultOf<Commands, Name extends keyof Commands> =
  Commands[Name] extends (args: never) => infer Result ? Awaited<Result> : never;

/** `Commands`: those that may be asked for. One that takes more serves wherever some of them do. */
export interface Writer<Commands> {
  /**
   * Runs one command; resolves after its commit is durable. Rejects with what the command threw, or
   * with StorageFailure when the disk failed, or had no room for what is not PATIENT: then nothing
   * happened, and after a failure nothing will from here on.
   */
  write<Name extends keyof Commands>(
    name: Name,
    args: ArgsOf<Commands, Name>,
  ): Promise<ResultOf<Commands, Name>>;
  /** Null while commits succeed; the reason once the disk has failed. */
  failure(): StorageFailure | null;
  /** Whether the disk took nothing of what it was last asked to: failed, or without room. */
  isRefusing(): boolean;
  /** Waits for what is queued, checkpoints, closes. Idempotent. */
  close(): Promise<void>;
}

/** The writer that a store needs for the commands this function makes. */
export type WriterOf<Make extends (...args: never) => unknown> = Writer<ReturnType<Make>>;

/** Commands that own what they begin, or end what is owned, do so as this node. */
export const writingAs = <Commands>(
  nodeId: () => number, writer: Writer<Commands>,
): Writer<Commands> => ({
  ...writer,
  write: (name, args) => writer.write(name, { ...args, nodeId: nodeId() }),
});

type MethodsOf<Commands, Feature extends string> = {
  [Name in keyof Commands]: Name extends `${Feature}.${infer Method}` ? Method : never;
}[keyof Commands];

/** The methods of a store that are nothing but the commands of their names. */
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
