import type { PageProps } from "../../routes.ts";
import { Page } from "../../kit/layout.tsx";

export function KnowledgebasePage({ params }: PageProps) {
  return <Page title="Knowledgebase">{params.id}</Page>;
}
