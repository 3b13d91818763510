// The one place where a test asks again and again: for what nobody tells of, as what the server
// writes down after its last event, or what another program has opened.
import { setTimeout as nextLook } from "node:timers/promises";
import { inspect } from "node:util";

const LOOK_MS = 20;
/** Between two looks at what takes longer than that already: many wait beside each other. */
const LATER_LOOK_MS = 50;
const LONG_MS = 1000;
/** What never comes fails in the end, on a busy machine too, and with what came in its place. */
const PATIENCE_MS = 120_000;

/** The first answer of which `holds` is true. */
export async function askUntil<Answer>(
  ask: () => Answer | Promise<Answer>, holds: (answer: Answer) => boolean,
): Promise<Answer> {
  const begun = performance.now();
  for (;;) {
    const answer = await ask();
    if (holds(answer)) return answer;
    const waitedMs = performance.now() - begun;
    if (waitedMs > PATIENCE_MS) {
      throw new Error(`asked for ${PATIENCE_MS / 1000} s, last answered: ${inspect(answer)}`);
    }
    await nextLook(waitedMs > LONG_MS ? LATER_LOOK_MS : LOOK_MS);
  }
}
