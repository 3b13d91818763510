// Transfers a call over Asterisk: its channel leaves our application for the operator's dialplan,
// which dials the number in a variable. From then on it is an ordinary call there, and continues
// whatever happens to this server. The alternatives were worse: two channels in a bridge of ours
// would be stuck in it when we are gone, and most trunks refuse a redirect (SIP's REFER). The
// dialplan needs, in a context with the application's name:
//   exten => transfer,1,Dial(${PARLEY_TRANSFER},60)
import { ProviderError } from "#core/faults.ts";
import { VENDOR, type Ari } from "./ari.ts";

export const TRANSFER = { extension: "transfer", variable: "PARLEY_TRANSFER" } as const;

interface TransferRequest {
  callId: string;
  app: string;
  /** The endpoint to dial. */
  endpoint: string;
  callerId: string | null;
}

/** Throws ProviderError. */
export async function transferTo(
  ari: Ari, { callId, app, endpoint, callerId }: TransferRequest,
): Promise<void> {
  const { extension, variable } = TRANSFER;
  // Asterisk would accept a missing extension, and then hang up.
  if (await ari.variable(callId, `DIALPLAN_EXISTS(${app},${extension},1)`) === "0") {
    throw new ProviderError(
      `${VENDOR}: extensions.conf has no ${extension} in the context ${app}`, { retryable: false });
  }
  await ari.setVariable(callId, variable, endpoint);
  if (callerId !== null) await ari.setVariable(callId, "CALLERID(num)", callerId);
  await ari.leave(callId, app, extension);
}
