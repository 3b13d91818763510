// Places for files that are being uploaded: none may hold all of them by sending slowly.
import { Fault } from "#core/faults.ts";
import { addressKey } from "#core/networks.ts";

/** An address, such as a visitor's on a poor line, holds one place in so many at the most. */
const ADDRESS_SHARE = 4;

export interface UploadPlaces {
  /** Returns what gives the place back; throws Fault 503 if there is none. */
  take(address: string): () => void;
}

export function createUploadPlaces(max: number): UploadPlaces {
  const ofAddressMax = Math.ceil(max / ADDRESS_SHARE);
  const byAddress = new Map<string, number>();
  let taken = 0;
  return {
    take: (address) => {
      const key = addressKey(address);
      const own = byAddress.get(key) ?? 0;
      if (taken >= max || own >= ofAddressMax) {
        throw new Fault(503, "Too many files are being uploaded.", { retryAfterS: 2 });
      }
      taken += 1;
      byAddress.set(key, own + 1);
      return () => {
        taken -= 1;
        const left = (byAddress.get(key) ?? 0) - 1;
        if (left > 0) byAddress.set(key, left);
        else byAddress.delete(key);
      };
    },
  };
}
