import type { PageProps } from "../../routes.ts";
import { Page } from "../../kit/layout.tsx";

export function ConversationPage({ params }: PageProps) {
  return <Page title="Conversation">{params.uuid}</Page>;
}
