import type { PageProps } from "../../routes.ts";
import { Page } from "../../kit/layout.tsx";

export function AssistantPage({ params }: PageProps) {
  return <Page title="Assistant">{params.id}</Page>;
}
