import { Page } from "../../kit/layout.tsx";

export function Calls() {
  return <Page title="Calls">…</Page>;
}
