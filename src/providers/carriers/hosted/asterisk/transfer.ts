// How a call over Asterisk is handed on: its channel leaves our application for the operator's
// dialplan, which dials the number it gets. From then on it is a call like any other there, and
// goes on whatever becomes of this server. The other ways were worse: two channels in a bridge of
// ours would hang on when we are gone, and a redirect (SIP's REFER) is refused by most trunks. The
// dialplan needs, in a context named as the application:
//   exten => transfer,1,Dial(${PARLEY_TRANSFER},60)
import { ProviderError } from "#core/faults.ts";
import { VENDOR, type Ari } from "./ari.ts";

export const TRANSFER = { extension: "transfer", variable: "PARLEY_TRANSFER" } as const;

interface TransferRequest {
  callId: string;
  app: string;
  /** What is dialled. */
  endpoint: string;
  callerId: string | null;
}

/** Throws ProviderError. */
export async function transferTo(
  ari: Ari, { callId, app, endpoint, callerId }: TransferRequest,
): Promise<void> {
  const { extension, variable } = TRANSFER;
  // Asterisk would take it all the same, and hang up.
  if (await ari.variable(callId, `DIALPLAN_EXISTS(${app},${extension},1)`) === "0") {
    throw new ProviderError(
      `${VENDOR}: extensions.conf has no ${extension} in the context ${app}`, { retryable: false });
  }
  await ari.setVariable(callId, variable, endpoint);
  if (callerId !== null) await ari.setVariable(callId, "CALLERID(num)", callerId);
  await ari.leave(callId, app, extension);
}
