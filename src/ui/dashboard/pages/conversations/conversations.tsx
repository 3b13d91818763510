import { Page } from "../../kit/layout.tsx";

export function Conversations() {
  return <Page title="Conversations">…</Page>;
}
