import type { PageProps } from "../../routes.ts";
import { Page } from "../../kit/layout.tsx";

export function ToolPage({ params }: PageProps) {
  return <Page title="Tool">{params.id}</Page>;
}
