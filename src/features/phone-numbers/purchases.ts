// Buying a number, in steps that a crash may separate: the price is reserved and the order written
// (one transaction), the provider provisions under the order's id, the charge, the number and its
// event are written (one transaction). Every failure refunds the money, and a number that is
// delivered too late is returned to its provider.
import { Fault, fieldFault, ProviderError } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Cluster } from "#cluster/cluster.ts";
import type { Logger } from "#core/logger.ts";
import type { Micros } from "#core/money.ts";
import type { Instant, System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent } from "#events/events.ts";
import type { NumberProvider, OfferedNumber } from "#providers/numbers/port.ts";
import type { NumberPrices } from "#core/price-lists.ts";
import { countriesOf, parseNumber, type ParsedNumber } from "./prices.ts";

/** `lost`: answered as failed and not charged, but the provider may still deliver. */
export type PurchaseState = "ordered" | "completed" | "lost" | "failed";

interface NewPurchase {
  uuid: string;
  accountId: number;
  idempotencyKey: string | null;
  phoneNumber: string;
  countryCode: string;
  smsCapable: boolean;
  region: string | null;
  provider: string;
  priceMicros: Micros;
  now: Instant;
}

export interface Purchase extends Omit<NewPurchase, "now"> {
  id: number;
  state: PurchaseState;
  /** The status of the client's answer; null while there is none. */
  status: number | null;
  error: string | null;
  phoneNumberId: number | null;
  createdAt: Instant;
  finishedAt: Instant | null;
}

export type OrderOutcome =
  | { kind: "ordered" }
  /** The key was used before, maybe for another number. */
  | { kind: "repeated"; uuid: string }
  | { kind: "in_use" }
  | { kind: "no_payment_method" }
  | { kind: "balance_too_low" };

interface NumberReturn {
  id: number;
  sid: string;
}

/** Each write is one transaction. */
export interface PurchaseStore {
  /** Whether the account was ever credited. */
  hasPaymentMethod(accountId: number): Promise<boolean>;
  /** True: somebody has bought the number or is buying it. */
  isInUse(phoneNumber: string): Promise<boolean>;
  findPurchase(uuid: string): Promise<Purchase | null>;
  findPurchaseByKey(accountId: number, idempotencyKey: string): Promise<Purchase | null>;
  /** Names of providers with unsettled orders, or with numbers to return. */
  awaited(): Promise<string[]>;
  /** Its unsettled orders: state `ordered` or `lost`, oldest first. */
  openPurchases(provider: string, rows: number): Promise<Purchase[]>;
  /** Reserves the price and writes the order, or writes nothing. */
  order(purchase: NewPurchase): Promise<OrderOutcome>;
  /** Claims an order for this node; false: another node has it, or it is settled. */
  attend(args: { accountId: number; uuid: string }): Promise<boolean>;
  /** Charges and writes number and event; the number is returned unless it was `ordered`. */
  complete(args: {
    accountId: number; uuid: string; sid: string; now: Instant;
  }): Promise<CommittedEvent[]>;
  /** Refunds the money. `mayArrive`: the provider may still deliver. */
  fail(args: {
    accountId: number; uuid: string; status: number; error: string; mayArrive: boolean;
    now: Instant;
  }): Promise<void>;
  /** Numbers to return to it, oldest first, from behind that id on. */
  returns(provider: string, behindId: number, rows: number): Promise<NumberReturn[]>;
  finishReturn(id: number): Promise<void>;
}

export interface Bought {
  /** `completed`, or else refused with its status and error. */
  purchase: Purchase;
  /** The key was used before: this is what was answered then. */
  replayed: boolean;
}

interface PurchaseOptions {
  holds: Cluster["holds"];
  store: PurchaseStore;
  /** In the order in which they are queried. */
  providers: NumberProvider[];
  prices: NumberPrices;
  bus: EventBus;
  system: System;
  log: Logger;
}

export interface OfferWithPrice extends OfferedNumber {
  monthlyMicros: Micros;
}

export interface Purchases {
  /** Fault 500 when nothing was found and a provider did not answer. */
  search(countryCode: string, contains: string): Promise<OfferWithPrice[]>;
  /** Throws Faults with the contract's wording. */
  purchase(
    accountId: number, phoneNumber: string, idempotencyKey: string | null,
  ): Promise<Bought>;
  /** Settles orders that nobody works on, and returns numbers to their providers. */
  sweep(): Promise<void>;
  /** Waits for orders in progress; a sweep begins no more. */
  close(): Promise<void>;
}

const UNPARSABLE =
  "Unable to parse phone number. Please provide a valid E.164 format number.";
const NOT_AVAILABLE = "This phone number is not available for purchase. "
  + "Please search for available numbers first.";
const PROVIDER_FAILED =
  "Failed to purchase phone number from provider. Please contact support.";

const refusals = {
  inUse: () => new Fault(400, "This phone number is already in use."),
  notAvailable: () => new Fault(400, NOT_AVAILABLE),
  noPaymentMethod: () =>
    new Fault(402, "No payment method found. Please add a payment method to your account."),
  paymentFailed: () => new Fault(402, "Payment failed. Please update your payment method."),
  keyOfAnother: () =>
    fieldFault("idempotency_key", "The Idempotency-Key was used for another phone number."),
  unsettled: () => new Fault(503, "The purchase is not settled with the provider yet. "
    + "Please try again with the same Idempotency-Key.", { retryAfterS: 60 }),
};

/** The client's answer to a settled purchase, now or on a retry with the same key. */
function endOf(purchase: Purchase | null, replayed: boolean): Bought {
  if (!purchase || purchase.state === "ordered") throw refusals.unsettled();
  return { purchase, replayed };
}

function createOffers({ providers, prices, log }: PurchaseOptions) {
  const priced = (offer: OfferedNumber): OfferWithPrice | null => {
    const monthlyMicros = offer.monthlyMicros ?? prices.of(offer.countryCode);
    return monthlyMicros === null ? null : { ...offer, monthlyMicros };
  };
  return {
    search: async (countryCode: string, contains: string): Promise<OfferWithPrice[]> => {
      const found: OfferWithPrice[] = [];
      let silent = false;
      for (const provider of providers) {
        const most = LIMITS.numberSearchMax - found.length;
        if (most === 0) break;
        try {
          const offers = await provider.search({ countryCode, contains, most });
          found.push(...offers.map(priced).filter((offer) => offer !== null));
        } catch (error) {
          if (!(error instanceof ProviderError)) throw error;
          log.warn({ err: error, provider: provider.name }, "a number search failed");
          silent = true;
        }
      }
      if (silent && found.length === 0) {
        throw new Fault(500, "Failed to search for phone numbers. Please try again.");
      }
      return found;
    },
    find: async (number: ParsedNumber): Promise<[NumberProvider, OfferWithPrice] | null> => {
      const wanted = { ...number, countryCodes: countriesOf(number, prices) };
      for (const provider of providers) {
        const offer = await provider.find(wanted);
        const withPrice = offer && priced(offer);
        if (withPrice) return [provider, withPrice];
      }
      return null;
    },
  };
}

type OrderRef = Pick<Purchase, "accountId" | "uuid">;

/** Settles single orders. */
function createSettling(options: PurchaseOptions) {
  const { store, providers, bus, system, log, holds } = options;
  const providerOf = (name: string) => providers.find((provider) => provider.name === name);
  const complete = async ({ accountId, uuid }: OrderRef, sid: string): Promise<void> => {
    bus.publishCommitted(await store.complete({ accountId, uuid, sid, now: system.now() }));
  };
  const fail = (
    { accountId, uuid }: OrderRef, status: number, mayArrive: boolean,
  ): Promise<void> => {
    const error = status === 400 ? NOT_AVAILABLE : PROVIDER_FAILED;
    return store.fail({ accountId, uuid, status, error, mayArrive, now: system.now() });
  };

  return {
    /** For an order that is written, but not sent to its provider yet. */
    fulfil: async (provider: NumberProvider, order: NewPurchase) => {
      const { uuid, phoneNumber } = order;
      // The node that has taken over this node's work refunds the money.
      if (!holds()) return;
      const result = await provider.provision({ phoneNumber, purchaseId: uuid });
      if (result.kind === "provisioned") return complete(order, result.sid);
      if (result.kind === "unavailable") return fail(order, 400, false);
      log.error({ provider: provider.name, reason: result.reason, purchase: uuid },
        "could not buy a number at its provider");
      if (result.kind === "refused") return fail(order, 500, false);
      const sid = await provider.lookUp({ phoneNumber, purchaseId: uuid }).catch(() => null);
      return sid === null ? fail(order, 500, true) : complete(order, sid);
    },
    /** For an order that nobody works on: completes it if its provider has it, else refunds it. */
    resume: async (purchase: Purchase): Promise<void> => {
      const { accountId, uuid, phoneNumber, state, finishedAt } = purchase;
      if (!await store.attend({ accountId, uuid })) return;
      const provider = providerOf(purchase.provider);
      if (!provider) {
        return log.warn({ provider: purchase.provider }, "a number's provider is not configured");
      }
      const sid = await provider.lookUp({ phoneNumber, purchaseId: uuid });
      if (sid !== null) return complete(purchase, sid);
      const age = system.now() - (finishedAt ?? purchase.createdAt);
      const mayArrive = state === "ordered" || age < LIMITS.numberSettleMs * 1000;
      if (state === "ordered" || !mayArrive) await fail(purchase, 500, mayArrive);
    },
  };
}

/** Tracks the orders that this process works on, so that none is worked on twice. */
function createDesk() {
  const underWay = new Map<string, Promise<unknown>>();
  let closed = false;
  return {
    attend: <T>(uuid: string, work: () => Promise<T>): Promise<T> => {
      const attended = work().finally(() => underWay.delete(uuid));
      underWay.set(uuid, attended);
      return attended;
    },
    workOn: (uuid: string) => underWay.get(uuid),
    isClosed: () => closed,
    /** Waits for orders in progress. */
    close: async (): Promise<void> => {
      closed = true;
      await Promise.allSettled(underWay.values());
    },
  };
}

/** Provider by provider, so that none keeps the numbers of another waiting. */
function createSweep(
  { store, providers, log }: PurchaseOptions,
  settling: ReturnType<typeof createSettling>,
  desk: ReturnType<typeof createDesk>,
): Purchases["sweep"] {
  /**
   * The return that each provider was last asked for. The next sweep begins behind it, so that one
   * that is refused for ever does not keep the others waiting.
   */
  const lastTried = new Map<string, number>();
  const rows = LIMITS.numberSweepRowsMax;
  const settle = async (provider: string): Promise<void> => {
    for (const purchase of await store.openPurchases(provider, rows)) {
      if (desk.workOn(purchase.uuid)) continue;
      if (desk.isClosed()) return;
      await desk.attend(purchase.uuid, () => settling.resume(purchase));
    }
  };
  const giveBack = async ({ name, release }: NumberProvider): Promise<void> => {
    const behind = await store.returns(name, lastTried.get(name) ?? 0, rows);
    const backs = behind.length > 0 ? behind : await store.returns(name, 0, rows);
    for (const { id, sid } of backs) {
      if (desk.isClosed()) return;
      lastTried.set(name, id);
      await release(sid);
      await store.finishReturn(id);
    }
  };
  return async () => {
    for (const name of await store.awaited()) {
      const provider = providers.find((one) => one.name === name);
      if (!provider) {
        log.warn({ provider: name }, "a number's provider is not configured");
        continue;
      }
      try {
        await settle(name);
        await giveBack(provider);
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
        log.warn({ err: error, provider: name }, "a number's provider failed; trying again");
      }
    }
  };
}

export function createPurchases(options: PurchaseOptions): Purchases {
  const { store, system, log } = options;
  const offers = createOffers(options);
  const settling = createSettling(options);
  const desk = createDesk();
  const replay = async (uuid: string, phoneNumber: string): Promise<Bought> => {
    // Looked up first: the work may have ended by the time the order is read.
    const underWay = desk.workOn(uuid);
    const known = await store.findPurchase(uuid);
    if (known?.phoneNumber !== phoneNumber) throw refusals.keyOfAnother();
    if (known.state === "ordered") {
      const work = underWay ?? desk.workOn(uuid) ?? desk.attend(uuid, () => settling.resume(known));
      await work.catch((error: unknown) => {
        if (!(error instanceof ProviderError)) throw error;
      });
    }
    return endOf(await store.findPurchase(uuid), true);
  };
  const findOffer = async (number: ParsedNumber) => {
    try {
      return await offers.find(number);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      log.warn({ err: error }, "could not look up a number at its provider");
      throw new Fault(500, PROVIDER_FAILED);
    }
  };
  const order = async (purchase: NewPurchase, provider: NumberProvider): Promise<Bought> => {
    // Registered before it is written, so that no sweep takes it for abandoned.
    const ordered = await desk.attend(purchase.uuid, async () => {
      const outcome = await store.order(purchase);
      if (outcome.kind === "ordered") await settling.fulfil(provider, purchase);
      return outcome;
    });
    if (ordered.kind === "repeated") return replay(ordered.uuid, purchase.phoneNumber);
    if (ordered.kind === "in_use") throw refusals.inUse();
    if (ordered.kind === "no_payment_method") throw refusals.noPaymentMethod();
    if (ordered.kind === "balance_too_low") throw refusals.paymentFailed();
    return endOf(await store.findPurchase(purchase.uuid), false);
  };
  return {
    search: offers.search,
    purchase: async (accountId, text, idempotencyKey) => {
      const number = parseNumber(text);
      if (!number) throw new Fault(422, UNPARSABLE);
      const { phoneNumber } = number;
      const findKnown = async (): Promise<Purchase | null> =>
        idempotencyKey === null ? null : await store.findPurchaseByKey(accountId, idempotencyKey);
      const known = await findKnown();
      if (known) return replay(known.uuid, phoneNumber);
      if (!await store.hasPaymentMethod(accountId)) throw refusals.noPaymentMethod();
      if (await store.isInUse(phoneNumber)) throw refusals.inUse();
      const found = await findOffer(number);
      if (!found) {
        // It was sold during the search, perhaps to an earlier request with the same key.
        const meanwhile = await findKnown();
        if (meanwhile) return replay(meanwhile.uuid, phoneNumber);
        throw refusals.notAvailable();
      }
      const [provider, { countryCode, smsCapable, region, monthlyMicros }] = found;
      return order({
        uuid: system.uuid(), accountId, idempotencyKey, phoneNumber, countryCode, smsCapable,
        region, provider: provider.name, priceMicros: monthlyMicros, now: system.now(),
      }, provider);
    },
    sweep: createSweep(options, settling, desk),
    close: desk.close,
  };
}
