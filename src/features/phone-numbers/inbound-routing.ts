// Routes inbound calls: which of our numbers was dialled, whether the sender may call it, and which
// assistant answers. Every carrier calls this before it answers.
import { isInside, parseNetworks } from "#core/networks.ts";
import { likeliest, likenessOf } from "./dialled.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { PhoneNumber } from "./phone-numbers.ts";
import type { SipTrunkRecord, SipTrunks } from "./sip-trunks.ts";

interface InboundCall {
  /** The number as dialled, in any format. */
  calledNumber: string;
  /** Null: a hosted carrier whose signature was verified, for a number bought there. */
  sourceAddress: string | null;
  /** Id of the trunk whose credentials the sender presented; null: none. */
  trunkId: number | null;
}

type InboundRoute =
  | { kind: "assistant"; assistantId: number; accountId: number; number: string }
  /** A SIP carrier answers unknown, not allowed and tied alike, so that scanners learn nothing. */
  | {
      kind: "refused";
      cause: "unknown_number" | "inactive_assistant" | "no_assistant" | "not_allowed" | "tied";
    };

export interface InboundStore {
  /** The number in E.164, bought here and not suspended; null: nobody has it. */
  findProvided(phoneNumber: string): Promise<PhoneNumber | null>;
  /** The number's account and hosted carrier; null: nobody has it, or it is at no such carrier. */
  findHosted(phoneNumber: string): Promise<{ accountId: number; carrier: HostedAccount } | null>;
  /** The inbound assistant the number rings at. */
  assistantOn(phoneNumberId: number): Promise<{ id: number; isActive: boolean } | null>;
}

const refused = (cause: Extract<InboundRoute, { kind: "refused" }>["cause"]): InboundRoute =>
  ({ kind: "refused", cause });

/**
 * Whether the sender may call the trunk's number. A telephone system with several numbers here may
 * authenticate with the same username for each of them.
 */
function admits(
  trunk: SipTrunkRecord, shown: SipTrunkRecord | null, sourceAddress: string,
): boolean {
  if (trunk.inboundAuth === "ip") {
    return isInside(sourceAddress, parseNetworks(trunk.allowedNetworks ?? []));
  }
  return shown?.accountId === trunk.accountId && shown.username === trunk.username
    && shown.inboundAuth === "auth";
}

export function createInboundRouting(
  { store, trunks }: {
    store: InboundStore;
    trunks: Pick<SipTrunks, "all" | "approvedAccount">;
  },
) {
  const answer = async (
    { id, accountId, phoneNumber: number }: Pick<PhoneNumber, "id" | "accountId" | "phoneNumber">,
  ): Promise<InboundRoute> => {
    const assistant = await store.assistantOn(id);
    if (!assistant) return refused("no_assistant");
    if (!assistant.isActive) return refused("inactive_assistant");
    return { kind: "assistant", assistantId: assistant.id, accountId, number };
  };
  /** The competing claims that the operator has approved; all of them if none is approved. */
  const entitledAmong = async (claims: SipTrunkRecord[]): Promise<SipTrunkRecord[]> => {
    if (new Set(claims.map(({ accountId }) => accountId)).size < 2) return claims;
    const owners = await Promise.all(
      claims.map(({ phoneNumber }) => trunks.approvedAccount(phoneNumber)));
    const approved = claims.filter(({ accountId }, index) => owners[index] === accountId);
    return approved.length > 0 ? approved : claims;
  };
  const findProvided = (called: string): Promise<PhoneNumber | null> =>
    store.findProvided(called.startsWith("+") ? called : `+${called}`);

  return async ({ calledNumber, sourceAddress, trunkId }: InboundCall): Promise<InboundRoute> => {
    const called = calledNumber.trim();
    if (sourceAddress === null) {
      const number = await findProvided(called);
      return number ? await answer(number) : refused("unknown_number");
    }
    const all = await trunks.all();
    const shown = all.find(({ id }) => id === trunkId) ?? null;
    // An authenticated sender is an account's telephone system and means that account's numbers.
    const inView = shown ? all.filter(({ accountId }) => accountId === shown.accountId) : all;
    const meant = inView.filter((trunk) => likenessOf(called, trunk) !== null);
    const admitted = meant.filter((one) => admits(one, shown, sourceAddress));
    const entitled = await entitledAmong(admitted);
    // A call that may be meant for another account is refused.
    if (new Set(entitled.map(({ accountId }) => accountId)).size > 1) return refused("tied");
    const trunk = likeliest(called, entitled);
    if (trunk) return answer(trunk);
    const isThere = meant.length > 0 || await findProvided(called) !== null;
    return refused(isThere ? "not_allowed" : "unknown_number");
  };
}

export type RouteInbound = ReturnType<typeof createInboundRouting>;
