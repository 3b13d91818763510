// The one place where a test asks again and again: for what nobody tells of, as what the server
// writes down after its last event, or what another program has opened. The test's own time-out
// ends it.
import { setTimeout as nextLook } from "node:timers/promises";

const LOOK_MS = 20;

/** The first answer of which `holds` is true. */
export async function askUntil<Answer>(
  ask: () => Answer | Promise<Answer>, holds: (answer: Answer) => boolean,
): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (holds(answer)) return answer;
    await nextLook(LOOK_MS);
  }
}
