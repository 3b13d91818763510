// What there is to spend and what was spent on what. Money in and out one by one is the ledger's.
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
