// Reorders numbered chunks of audio from a carrier that does not promise their order (Telnyx). A
// missing chunk is waited for only until a few later ones have arrived. Pure but for its buffer.

/** Chunks held back for a missing one: 60 ms at the usual 20 ms each. */
export const REORDER_CHUNKS = 3;
/** A number this far behind is not late: the stream's numbering has restarted. */
const RESTART_CHUNKS = 100;

interface ChunkOrder<T> {
  /** The chunks that are due now, in order; late and repeated ones are dropped. */
  push(chunk: number, item: T): T[];
  /** What is still held, in order. */
  flush(): T[];
}

export function createChunkOrder<T>(): ChunkOrder<T> {
  const held = new Map<number, T>();
  let next: number | null = null;
  const release = (isAll: boolean): T[] => {
    const due: T[] = [];
    for (const [chunk, item] of [...held].sort(([left], [right]) => left - right)) {
      if (!isAll && chunk !== next) break;
      held.delete(chunk);
      due.push(item);
      next = chunk + 1;
    }
    return due;
  };
  return {
    push: (chunk, item) => {
      next ??= chunk;
      const before: T[] = [];
      if (chunk <= next - RESTART_CHUNKS) {
        before.push(...release(true));
        next = chunk;
      }
      if (chunk < next || held.has(chunk)) return before;
      held.set(chunk, item);
      // Too many are held: the missing one is skipped, and the first of those held is next.
      if (held.size > REORDER_CHUNKS) next = Math.min(...held.keys());
      return [...before, ...release(false)];
    },
    flush: () => release(true),
  };
}
