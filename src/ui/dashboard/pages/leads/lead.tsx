import type { PageProps } from "../../routes.ts";
import { Page } from "../../kit/layout.tsx";

export function LeadPage({ params }: PageProps) {
  return <Page title="Lead">{params.id}</Page>;
}
