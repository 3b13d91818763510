// The page at each address; `:name` is passed to the page in `params`.
import type { FunctionComponent } from "preact";
import type { PageProps } from "./page.ts";
import { CallPage } from "./pages/calls/call.tsx";
import { Calls } from "./pages/calls/calls.tsx";
import { ConversationPage } from "./pages/conversations/conversation.tsx";
import { Conversations } from "./pages/conversations/conversations.tsx";
import { Inbox } from "./pages/inbox/inbox.tsx";
import { later } from "./later.tsx";
import { Overview } from "./pages/overview/overview.tsx";

export const ROUTES: Record<string, FunctionComponent<PageProps>> = {
  "/": Overview,
  "/inbox/:uuid?": Inbox,
  "/assistants": later("Assistants"),
  "/templates": later("Assistants"),
  "/assistants/:id/:tab?": later("AssistantPage"),
  "/calls": Calls,
  "/calls/:id": CallPage,
  "/conversations": Conversations,
  "/conversations/:uuid": ConversationPage,
  "/knowledgebases": later("Knowledgebases"),
  "/knowledgebases/:id": later("KnowledgebasePage"),
  "/tools": later("Tools"),
  "/tools/:id": later("ToolPage"),
  "/numbers/:tab?": later("Numbers"),
  "/campaigns": later("Campaigns"),
  "/campaigns/:id/:tab?": later("CampaignPage"),
  "/leads": later("Leads"),
  "/leads/blocked": later("BlockedNumbers"),
  "/leads/:id": later("LeadPage"),
  "/webhooks": later("Webhooks"),
  "/webhooks/deliveries": later("Deliveries"),
  "/webhooks/deliveries/:id": later("DeliveryPage"),
  "/webhooks/endpoints/:id": later("EndpointPage"),
  "/money": later("Money"),
  "/ledger": later("Ledger"),
  "/keys": later("Keys"),
  "/team": later("Team"),
  "/audit": later("Audit"),
  "/server": later("ServerPage"),
};
