// The transfers of a call: to whom each went, how, and what became of it.
import { whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Status } from "#ui/dashboard/kit/layout.tsx";
import { said } from "#ui/dashboard/kit/said.ts";
import type { CallRecord } from "./call-state.ts";
import { usePhone } from "#ui/dashboard/later.tsx";
import { AssistantLink } from "./facts.tsx";

type Transfer = Pick<
  CallRecord["transfers"][number],
  | "id" | "type" | "transfer_to" | "assistant_id" | "status" | "outcome" | "stage"
  | "failure_reason" | "created_at"
>;

const HOW: Record<Transfer["type"], string> = {
  call_transfer: "Transferred", warm_call_transfer: "Transferred with a briefing",
  assistant_transfer: "Handed over to an assistant",
};

/** The stages of a transfer that is in progress. */
const STAGES: Record<string, string> = {
  announcing: "The caller is told to hold", dialling: "The colleague is called",
  ringing: "The colleague’s telephone rings", briefing: "The colleague hears what it is about",
  asking: "The colleague is asked whether to take the call",
  connected: "Caller and colleague talk",
};

export function Transfers({ transfers }: { transfers: readonly Transfer[] }) {
  const phone = usePhone();
  if (transfers.length === 0) return null;
  return (
    <Card title="Transfers">
      <ol class="calls-transfers" aria-label="Transfers">
        {transfers.map((one) => (
          <li key={one.id}>
            <span>
              <strong>
                {one.assistant_id === null
                  ? phone(one.transfer_to)
                  : <AssistantLink uuid={one.assistant_id} name={one.transfer_to} />}
              </strong>
              <Status code={one.status} />
            </span>
            <small>{HOW[one.type]}, {whenExactly(one.created_at)}</small>
            {one.stage !== null && STAGES[one.stage] && <p role="status">{STAGES[one.stage]}</p>}
            {one.failure_reason !== null && <p>{said(one.failure_reason)}</p>}
          </li>
        ))}
      </ol>
    </Card>
  );
}
