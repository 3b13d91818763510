import type { PageProps } from "../../routes.ts";
import { Page } from "../../kit/layout.tsx";

export function CallPage({ params }: PageProps) {
  return <Page title="Call">{params.id}</Page>;
}
