// Which threads go first where the system permits it: Linux has a priority for every thread, and a
// thread begins with that of the thread that started it.
import { constants, setPriority } from "node:os";

const {
  PRIORITY_BELOW_NORMAL, PRIORITY_HIGH, PRIORITY_LOW, PRIORITY_NORMAL,
} = constants.priority;

/** Called by the thread that plays audio. */
export const preferThisThread = (): void => setThisThread(PRIORITY_HIGH);

/** Called by threads that one with audio starts for work that may take longer than a frame. */
export const levelThisThread = (): void => setThisThread(PRIORITY_NORMAL);

/** Called by the thread whose work nobody waits for. */
export const deferThisThread = (): void => setThisThread(PRIORITY_LOW);

/** Called before the process has started a thread. */
export const deferThisProcess = (): void => trySetting(PRIORITY_BELOW_NORMAL);

/** On other systems the priority would be that of the whole process. */
function setThisThread(priority: number): void {
  if (process.platform === "linux") trySetting(priority);
}

function trySetting(priority: number): void {
  try {
    setPriority(0, priority);
  } catch (error) {
    // Most servers run as a user that may not raise its priority, and some may not even lower it.
    if ((error as { code?: string }).code !== "ERR_SYSTEM_ERROR") throw error;
  }
}
