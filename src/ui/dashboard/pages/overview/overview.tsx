import { Page } from "../../kit/layout.tsx";

export function Overview() {
  return <Page title="Overview">…</Page>;
}
