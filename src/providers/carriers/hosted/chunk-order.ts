// Puts numbered pieces of sound back into order where a carrier does not promise it (Telnyx). Waits
// for a missing one only as long as a few later ones take. Pure but for what it holds.

/** Pieces held back for one that is missing: 60 ms of the usual 20 ms. */
export const REORDER_CHUNKS = 3;
/** A number so far behind is not late: the stream counts anew. */
const RESTART_CHUNKS = 100;

interface ChunkOrder<T> {
  /** What is due now that this one came, in order; late and repeated ones are dropped. */
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
      // Too many wait: the missing one is given up, and the stream goes on with the first of them.
      if (held.size > REORDER_CHUNKS) next = Math.min(...held.keys());
      return [...before, ...release(false)];
    },
    flush: () => release(true),
  };
}
