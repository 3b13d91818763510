// A banner on every page before the balance is used up, and afterwards; trouble.tsx shows it unless
// its own banner already says so.
import { useMe } from "./data/lists.ts";
import { Needs } from "./data/rights.tsx";
import { when } from "./kit/format.ts";
import { Notice } from "./kit/layout.tsx";

export function LowBalance() {
  const { value } = useMe();
  if (!value || value.balance_state === "ok") return null;
  const { balance_state: state, balance_lasts_until: until } = value;
  const isEmpty = state === "empty";
  return (
    <Notice tone={isEmpty ? "bad" : "warn"}>
      <span>
        {isEmpty
          ? "The balance is used up: messages and calls are refused."
          : `At the pace of the last 7 days the balance lasts until ${when(until)}.`}{" "}
        <Needs right="money"><a href="#/money">Add money</a></Needs>
      </span>
    </Notice>
  );
}
