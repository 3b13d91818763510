// The numbers the operator imported (`parley number import`), as a provider: for SIP trunks that
// brought their own, and for trying everything out without an account anywhere.
import type { NumberProvider, OfferedNumber, Shelf, StockedNumber } from "./port.ts";

const offerOf = (stocked: StockedNumber): OfferedNumber => ({
  phoneNumber: stocked.phoneNumber,
  countryCode: stocked.countryCode,
  smsCapable: stocked.smsCapable,
  region: null,
  addressRequirements: "none",
  monthlyMicros: stocked.monthlyMicros,
});

export function createInventoryProvider(shelf: Shelf): NumberProvider {
  return {
    name: "inventory",
    search: async ({ countryCode, contains, most }) =>
      (await shelf.findFree(countryCode, contains, most)).map(offerOf),
    // What the operator said of the country counts, not what the digits say.
    find: async ({ phoneNumber }) => {
      const stocked = await shelf.findFreeNumber(phoneNumber);
      return stocked && offerOf(stocked);
    },
    provision: async ({ phoneNumber, purchaseId }) => {
      const isTaken = await shelf.take({ phoneNumber, purchaseUuid: purchaseId });
      return isTaken ? { kind: "provisioned", sid: purchaseId } : { kind: "unavailable" };
    },
    lookUp: async ({ purchaseId }) => (await shelf.isTaken(purchaseId) ? purchaseId : null),
    release: (sid) => shelf.putBack(sid),
    close: () => Promise.resolve(),
  };
}
