// One request we send within a dialog, from its first attempt to its outcome: a challenge is
// answered with a new request, and a 2xx to an INVITE is acknowledged every time it arrives.
import type { Authentication } from "./authentication.ts";
import { requestWithin, type DialogState, type Signalling } from "./dialog.ts";
import type { SipRequest, SipResponse } from "#providers/carriers/sip/grammar/message.ts";

export type Outcome =
  | { kind: "response"; response: SipResponse }
  | { kind: "failed"; why: "timeout" | "transport" };

interface Asking {
  signalling: Signalling;
  dialog: DialogState;
  authentication: Authentication;
}

export function ask(
  { signalling, dialog, authentication }: Asking,
  method: string,
  fill: (request: SipRequest) => void,
  done: (outcome: Outcome) => void,
): void {
  const authenticator = authentication.begin();
  const attempt = () => {
    const { request, peer } = requestWithin(dialog, method, signalling);
    fill(request);
    authenticator.prepare(request, peer);
    let acknowledgement: SipRequest | null = null;
    signalling.begin(request, peer, dialog.localHost, {
      response(response) {
        if (response.status < 200) return;
        if (response.status < 300 && method === "INVITE") {
          const isFirst = acknowledgement === null;
          acknowledgement ??= requestWithin(dialog, "ACK", signalling, request).request;
          signalling.post(acknowledgement, peer, dialog.localHost);
          if (!isFirst) return;
        }
        if (authenticator.challenged(response, peer)) attempt();
        else done({ kind: "response", response });
      },
      failed: (why) => done({ kind: "failed", why }),
    });
  };
  attempt();
}

/** Outcomes that mean that the dialog no longer exists (RFC 5057). */
export const endsDialog = (outcome: Outcome): boolean =>
  outcome.kind === "failed" || outcome.response.status === 481 || outcome.response.status === 408;
