import { Page } from "../../kit/layout.tsx";

export function Tools() {
  return <Page title="Tools">…</Page>;
}
