// The balance, and what was spent on what. The ledger has the individual entries.
import { Page } from "#ui/dashboard/kit/layout.tsx";
import { Balance } from "./balance.tsx";
import { Costs } from "./costs.tsx";
import "./money.css";

export const Money = () => (
  <Page title="Money">
    <Balance />
    <Costs />
  </Page>
);
