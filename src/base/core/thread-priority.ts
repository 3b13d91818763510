// Which threads go first where the system permits it: Linux has a priority for every thread, and a
// thread begins with that of the thread that started it.
import { constants, setPriority } from "node:os";

const { PRIORITY_HIGH, PRIORITY_NORMAL } = constants.priority;

/** Called by the thread that plays audio. */
export const preferThisThread = (): void => setThisThread(PRIORITY_HIGH);

/** Called by threads that one with audio starts for work that may take longer than a frame. */
export const levelThisThread = (): void => setThisThread(PRIORITY_NORMAL);

function setThisThread(priority: number): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, priority);
  } catch (error) {
    // Most servers do not run as somebody who may.
    if ((error as { code?: string }).code !== "ERR_SYSTEM_ERROR") throw error;
  }
}
