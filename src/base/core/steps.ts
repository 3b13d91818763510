// Deletions in steps, so that nobody's write waits for one that takes long.

/**
 * Repeats a step until nothing is left; after a crash, a repeated deletion removes the rest.
 * `take`: receives what each step did. False: there was nothing to delete.
 */
export async function deletedInSteps<Done extends { isGone: boolean }>(
  step: () => Promise<Done | null>, take: (done: Done) => void = () => undefined,
): Promise<boolean> {
  let done = await step();
  if (!done) return false;
  for (; done; done = done.isGone ? null : await step()) take(done);
  return true;
}
