import { Page } from "../../kit/layout.tsx";

export function Assistants() {
  return <Page title="Assistants">…</Page>;
}
