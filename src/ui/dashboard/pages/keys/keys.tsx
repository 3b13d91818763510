import { Page } from "../../kit/layout.tsx";

export function Keys() {
  return <Page title="API keys">…</Page>;
}
