// The one place where tests poll: for what no event announces, such as what the server stores after
// its last event, or what another program has opened.
import { setTimeout as nextLook } from "node:timers/promises";
import { inspect } from "node:util";

const LOOK_MS = 20;
/** The interval once a wait has lasted `LONG_MS`: many tests poll at the same time. */
const LATER_LOOK_MS = 50;
const LONG_MS = 1000;
/** Long enough for a busy machine; then what never comes fails, with the last answer. */
const PATIENCE_MS = 120_000;

/** The first answer for which `holds` is true. */
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
