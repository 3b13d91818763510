// Sets what uWebSockets.js reads from the environment, once, when it loads.
import { LIMITS } from "#core/limits.ts";

/** Its default of 4096 bytes is less than the cookies of many a site take. */
export function makeRoomForHeaders(): void {
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(LIMITS.headersBytesMax);
}
