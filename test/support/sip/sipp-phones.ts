// Debian's sipp as the telephones around a server with SIP; they end with the tests at the latest.
import { startSipp, type Sipp, type SippOptions } from "./sipp.ts";
import type { SipWorld } from "./server-with-sip.ts";

export interface SippPhones {
  start(options: SippOptions): Promise<Sipp>;
  /** A telephone that calls the number. */
  caller(scenario: string, number: string, more?: Partial<SippOptions>): Promise<Sipp>;
  /** The call that a telephone makes; rejects if none arrives. */
  arrived(phone: Sipp, number: string): Promise<number>;
  stop(): Promise<void>;
}

/** `world` is called only when a phone needs it, once there is one. */
export function createSippPhones(world: () => SipWorld): SippPhones {
  const running = new Set<Sipp>();
  const start: SippPhones["start"] = async (options) => {
    const started = await startSipp(options);
    running.add(started);
    return started;
  };
  return {
    start,
    caller: (scenario, number, more = {}) =>
      start({ scenario, number, to: world().sipPort, ...more }),
    arrived: (phone, number) => Promise.race([
      world().nextCall(number),
      phone.done.then(() => new Promise<number>(() => undefined)),
    ]),
    stop: async () => {
      for (const sipp of running) await sipp.stop();
    },
  };
}
