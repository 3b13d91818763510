// WebRTC of web calls, from the settings: where packets arrive, and which STUN and TURN servers a
// page may use. Called by calls.ts and mount.ts.
import { createHmac } from "node:crypto";
import type { Config } from "#config/config.ts";
import type { System } from "#core/system.ts";
import type { IceServer } from "#features/calls/web-path.ts";
import type { PeersConfig } from "#providers/carriers/web/port.ts";

/** How long credentials for a TURN server are valid: longer than any call. */
const TURN_NAME_S = 12 * 60 * 60;

/** Null: the audio of web calls goes over their WebSockets only. */
export function peersConfigOf(config: Config): PeersConfig | null {
  if (!config.PARLEY_WEBRTC) return null;
  return {
    host: config.PARLEY_WEBRTC_HOST ?? config.PARLEY_HOST,
    port: config.PARLEY_WEBRTC_PORT ?? config.PARLEY_PORT,
    publicHosts: config.PARLEY_WEBRTC_PUBLIC_HOSTS,
  };
}

/** STUN and TURN servers for a page that calls now; null: web calls use their WebSockets only. */
export function iceServersOf(config: Config, system: System): (() => IceServer[]) | null {
  const {
    PARLEY_WEBRTC: isOn, PARLEY_ICE_URLS: urls, PARLEY_TURN_USER: user, PARLEY_TURN_SECRET: secret,
  } = config;
  if (!isOn) return null;
  const turn = urls.filter((url) => url.startsWith("turn"));
  const stun = urls.filter((url) => !url.startsWith("turn"));
  return () => {
    const credentials = secret === null ? {} : turnCredentials(user, secret, system);
    return [
      ...(stun.length > 0 ? [{ urls: stun }] : []),
      ...(turn.length > 0 ? [{ urls: turn, ...credentials }] : []),
    ];
  };
}

/** A user name that is its own expiry, and its password: coturn's REST API, widely supported. */
function turnCredentials(user: string | null, secret: string, system: System) {
  if (user !== null) return { username: user, credential: secret };
  const username = String(Math.floor(system.now() / 1e6) + TURN_NAME_S);
  return { username, credential: createHmac("sha1", secret).update(username).digest("base64") };
}
