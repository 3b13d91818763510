import { Page } from "../../kit/layout.tsx";

export function Knowledgebases() {
  return <Page title="Knowledge">…</Page>;
}
