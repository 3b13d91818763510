import type { PageProps } from "../../routes.ts";
import { Page } from "../../kit/layout.tsx";

export function CampaignPage({ params }: PageProps) {
  return <Page title="Campaign">{params.id}</Page>;
}
