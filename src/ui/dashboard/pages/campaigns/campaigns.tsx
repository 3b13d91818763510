import { Page } from "../../kit/layout.tsx";

export function Campaigns() {
  return <Page title="Campaigns">…</Page>;
}
