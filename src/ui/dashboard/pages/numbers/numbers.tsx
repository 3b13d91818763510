import { Page } from "../../kit/layout.tsx";

export function Numbers() {
  return <Page title="Numbers">…</Page>;
}
