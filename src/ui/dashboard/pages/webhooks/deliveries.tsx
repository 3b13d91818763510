import { Page } from "../../kit/layout.tsx";

export function Deliveries() {
  return <Page title="Webhook deliveries">…</Page>;
}
