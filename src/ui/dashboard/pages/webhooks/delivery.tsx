import type { PageProps } from "../../routes.ts";
import { Page } from "../../kit/layout.tsx";

export function DeliveryPage({ params }: PageProps) {
  return <Page title="Delivery">{params.id}</Page>;
}
