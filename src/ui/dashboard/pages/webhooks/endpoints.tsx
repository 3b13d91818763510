import { Page } from "../../kit/layout.tsx";

export function Webhooks() {
  return <Page title="Webhooks">…</Page>;
}
