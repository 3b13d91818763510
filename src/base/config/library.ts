// What uWebSockets.js reads of the environment, once, when it loads.
import { LIMITS } from "#core/limits.ts";

/** Its own 4096 bytes are fewer than the cookies of many a site. */
export function makeRoomForHeaders(): void {
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(LIMITS.headersBytesMax);
}
