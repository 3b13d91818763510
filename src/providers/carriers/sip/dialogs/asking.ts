// One request of ours within a dialog, from its first try to its outcome: challenges are answered
// with the next sequence number, a 2xx to an INVITE is acknowledged as often as it comes.
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

/** Answers that say that the dialog is no more (RFC 5057). */
export const endsDialog = (outcome: Outcome): boolean =>
  outcome.kind === "failed" || outcome.response.status === 481 || outcome.response.status === 408;
