// Telephone numbers: those the account has, those it can buy, and trunks to its own telephone
// system. Each tab has its own address.
import type { PageProps } from "#ui/dashboard/page.ts";
import { Page, Tabs } from "#ui/dashboard/kit/layout.tsx";
import { Buy } from "./buy.tsx";
import { OwnNumbers } from "./own-numbers.tsx";
import { SipTrunks } from "./sip-trunks.tsx";
import "./numbers.css";

const TABS = [
  { id: "own", href: "#/numbers", label: "Numbers" },
  { id: "buy", href: "#/numbers/buy", label: "Buy a number" },
  { id: "sip-trunks", href: "#/numbers/sip-trunks", label: "SIP trunks" },
];

export function Numbers({ params: { tab = "own" } }: PageProps) {
  const isOwn = tab !== "buy" && tab !== "sip-trunks";
  return (
    <Page title="Numbers">
      <Tabs tabs={TABS} current={isOwn ? "own" : tab} />
      {isOwn && <OwnNumbers />}
      {tab === "buy" && <Buy />}
      {tab === "sip-trunks" && <SipTrunks />}
    </Page>
  );
}
