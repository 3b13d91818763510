import { Page } from "../../kit/layout.tsx";

export function Ledger() {
  return <Page title="Ledger">…</Page>;
}
