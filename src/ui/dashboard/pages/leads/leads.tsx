import { Page } from "../../kit/layout.tsx";

export function Leads() {
  return <Page title="Leads">…</Page>;
}
