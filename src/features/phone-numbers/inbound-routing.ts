// Routes calls that come in: which of our numbers was dialled, whether whoever sends the call may
// ring it, and which assistant answers there. Every carrier asks here before it answers.
import { isInside, parseNetworks } from "#core/networks.ts";
import { likeliest, likenessOf } from "./dialled.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { PhoneNumber } from "./phone-numbers.ts";
import type { SipTrunkRecord, SipTrunks } from "./sip-trunks.ts";

interface InboundCall {
  /** As it was dialled, in any spelling. */
  calledNumber: string;
  /** Null: a hosted carrier, its signature checked, brings a call for a number bought there. */
  sourceAddress: string | null;
  /** Id of the trunk whose name and password the sender has shown; null: it has shown none. */
  trunkId: number | null;
}

type InboundRoute =
  | { kind: "assistant"; assistantId: number; accountId: number; number: string }
  /** A SIP carrier answers the first and the last alike: scanners learn no numbers. */
  | {
      kind: "refused";
      cause: "unknown_number" | "inactive_assistant" | "no_assistant" | "not_allowed" | "tied";
    };

export interface InboundStore {
  /** The number in E.164, bought here and not suspended; null: nobody has it. */
  findProvided(phoneNumber: string): Promise<PhoneNumber | null>;
  /** The account that has it and the hosted carrier it is at; null: nobody's, or at none. */
  findHosted(phoneNumber: string): Promise<{ accountId: number; carrier: HostedAccount } | null>;
  /** The inbound assistant the number rings at. */
  assistantOn(phoneNumberId: number): Promise<{ id: number; isActive: boolean } | null>;
}

const refused = (cause: Extract<InboundRoute, { kind: "refused" }>["cause"]): InboundRoute =>
  ({ kind: "refused", cause });

/**
 * Whether the sender may ring the trunk's number. A telephone system with several numbers here may
 * log in with the same name for each of them.
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
  /** Where the operator has said whose a number is, its claims alone. */
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
    // Who has logged in is an account's own telephone system and means that account's numbers.
    const inView = shown ? all.filter(({ accountId }) => accountId === shown.accountId) : all;
    const meant = inView.filter((trunk) => likenessOf(called, trunk) !== null);
    const admitted = meant.filter((one) => admits(one, shown, sourceAddress));
    const entitled = await entitledAmong(admitted);
    // Nobody hears what may be meant for somebody else.
    if (new Set(entitled.map(({ accountId }) => accountId)).size > 1) return refused("tied");
    const trunk = likeliest(called, entitled);
    if (trunk) return answer(trunk);
    const isThere = meant.length > 0 || await findProvided(called) !== null;
    return refused(isThere ? "not_allowed" : "unknown_number");
  };
}

export type RouteInbound = ReturnType<typeof createInboundRouting>;
