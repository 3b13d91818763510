// Composition of phone numbers: the providers, purchases and renewals over them, the sweep that
// moves both along, SIP trunks, and the routing of incoming calls. Called by features.ts; app.ts
// runs the sweep.
import type { Cluster } from "#cluster/cluster.ts";
import type { Wire } from "#cluster/wire.ts";
import { hostedPaths } from "#features/calls/hosted/hosted.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import { readNumberPrices } from "#core/price-lists.ts";
import type { SecretBox } from "#core/secrets.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import { createAddressPolicy } from "#outbound/addresses.ts";
import { createInboundRouting } from "#features/phone-numbers/inbound-routing.ts";
import { createOwnedNumbers } from "#features/phone-numbers/phone-numbers.ts";
import { createPurchases } from "#features/phone-numbers/purchases.ts";
import { createRenewals } from "#features/phone-numbers/renewals.ts";
import { createSipTrunks } from "#features/phone-numbers/sip-trunks.ts";
import { createSweep } from "#features/phone-numbers/sweep.ts";
import { createInventoryProvider } from "#providers/numbers/inventory.ts";
import type { NumberProvider } from "#providers/numbers/port.ts";
import { createTwilioNumbers } from "#providers/numbers/twilio.ts";
import type { Storage } from "#storage/storage.ts";

interface NumbersOptions {
  config: Pick<
    Config,
    | "PARLEY_TWILIO_ACCOUNT_SID" | "PARLEY_TWILIO_AUTH_TOKEN" | "PARLEY_TWILIO_URL"
    | "PARLEY_NUMBER_GRACE_DAYS"
  > & Partial<Pick<Config, "PARLEY_PUBLIC_URL" | "PARLEY_NUMBER_PRICES_FILE">>;
  storage: Pick<Storage, "phoneNumbers" | "numberInventory">;
  nodes: Pick<Cluster, "holds">;
  bus: EventBus;
  system: System;
  log: Logger;
}

/** The operator's own numbers come first, because they cost nothing more. */
function createProviders({ config, storage }: NumbersOptions): NumberProvider[] {
  const {
    PARLEY_TWILIO_URL: url, PARLEY_TWILIO_ACCOUNT_SID: accountSid,
    PARLEY_TWILIO_AUTH_TOKEN: authToken, PARLEY_PUBLIC_URL: publicUrl = null,
  } = config;
  const voiceUrl = publicUrl === null ? null : publicUrl + hostedPaths("twilio").voice;
  const inventory = createInventoryProvider(storage.numberInventory);
  return url === null || accountSid === null || authToken === null
    ? [inventory]
    : [inventory, createTwilioNumbers({ url, accountSid, authToken, voiceUrl })];
}

export function createNumbers(options: NumbersOptions) {
  const { config, storage, bus, system, log } = options;
  const store = storage.phoneNumbers;
  const providers = createProviders(options);
  const purchases = createPurchases({
    holds: options.nodes.holds, store, providers, bus, system, log,
    prices: config.PARLEY_NUMBER_PRICES_FILE ?? readNumberPrices(),
  });
  const renewals = createRenewals({
    store, bus, system, log, graceDays: config.PARLEY_NUMBER_GRACE_DAYS,
  });
  const sweep = createSweep({ renewals, purchases });
  return {
    numbers: createOwnedNumbers({ store, bus, system }),
    purchases,
    sweep: sweep.run,
    /** Waits for purchases and sweeps in progress. Idempotent. */
    close: async (): Promise<void> => {
      await Promise.allSettled([sweep.settled(), purchases.close()]);
      await Promise.all(providers.map((provider) => provider.close()));
    },
  };
}

/** The topic that announces changed trunks. */
const TRUNKS = "trunks";
/** The topic on which a node with fewer trunks than others asks for some. */
const TRUNKS_WANTED = "trunks.wanted";

interface TelephonyOptions extends NumbersOptions {
  nodes: Pick<Cluster, "holds" | "nodeId" | "alive">;
  /** Null: there are no other nodes. */
  wire: Wire | null;
  config: NumbersOptions["config"] & Pick<
    Config, "PARLEY_ALLOW_PRIVATE_NETWORKS" | "PARLEY_SIP_PORT" | "PARLEY_SIP_TRUNKS_MAX"
  >;
  box: SecretBox;
  storage: NumbersOptions["storage"] & Pick<Storage, "sipTrunks">;
}

/** Numbers of every type, and the routing of calls to them. */
export function createTelephony(options: TelephonyOptions) {
  const { config, storage, box, system, log, nodes, wire } = options;
  const bought = createNumbers(options);
  const { allows } = createAddressPolicy(config.PARLEY_ALLOW_PRIVATE_NETWORKS);
  const sipTrunks = createSipTrunks({
    store: storage.sipTrunks, box, system, log, mayReach: allows,
    trunksMax: config.PARLEY_SIP_TRUNKS_MAX,
    nodes: wire && {
      ...nodes, hasSip: config.PARLEY_SIP_PORT !== null,
      announce: () => wire.publish(TRUNKS, new Uint8Array()),
      ask: () => wire.publish(TRUNKS_WANTED, Buffer.from(String(nodes.nodeId))),
    },
  });
  let underWay: Promise<unknown> = Promise.resolve();
  const follow = (work: Promise<void>, failure: string): void => {
    const followed = work.catch((error: unknown) => log.error({ err: error }, failure));
    underWay = Promise.all([underWay, followed]).then(() => undefined);
  };
  const stopHearing = [
    wire?.subscribe(TRUNKS, () => follow(sipTrunks.look(), "could not check the SIP trunks")),
    wire?.subscribe(TRUNKS_WANTED, (data) => {
      const askerId = Number(Buffer.from(data).toString());
      if (askerId === nodes.nodeId) return;
      follow(sipTrunks.give(askerId), "could not give a SIP trunk to another node");
    }),
  ];
  bought.numbers.onRemoved(sipTrunks.removed);
  const routeInbound = createInboundRouting({ store: storage.phoneNumbers, trunks: sipTrunks });
  return {
    ...bought, sipTrunks, routeInbound,
    /** Other nodes are heard no more: they may stop at the same time, and say so. Idempotent. */
    close: async (): Promise<void> => {
      for (const stop of stopHearing) stop?.();
      await Promise.all([underWay, bought.close()]);
    },
  };
}
