// Which page stands at which address; `:name` is handed to the page in `params`.
import type { FunctionComponent } from "preact";
import type { PageProps } from "./page.ts";
import { AssistantPage } from "./pages/assistants/assistant.tsx";
import { Assistants } from "./pages/assistants/assistants.tsx";
import { Audit } from "./pages/audit/audit.tsx";
import { BlockedNumbers } from "./pages/leads/blocked.tsx";
import { CallPage } from "./pages/calls/call.tsx";
import { Calls } from "./pages/calls/calls.tsx";
import { CampaignPage } from "./pages/campaigns/campaign.tsx";
import { Campaigns } from "./pages/campaigns/campaigns.tsx";
import { ConversationPage } from "./pages/conversations/conversation.tsx";
import { Conversations } from "./pages/conversations/conversations.tsx";
import { Deliveries } from "./pages/webhooks/deliveries.tsx";
import { DeliveryPage } from "./pages/webhooks/delivery.tsx";
import { Keys } from "./pages/keys/keys.tsx";
import { Inbox } from "./pages/inbox/inbox.tsx";
import { KnowledgebasePage } from "./pages/knowledge/knowledgebase.tsx";
import { Knowledgebases } from "./pages/knowledge/knowledgebases.tsx";
import { LeadPage } from "./pages/leads/lead.tsx";
import { Leads } from "./pages/leads/leads.tsx";
import { Ledger } from "./pages/ledger/ledger.tsx";
import { Numbers } from "./pages/numbers/numbers.tsx";
import { Overview } from "./pages/overview/overview.tsx";
import { ServerPage } from "./pages/server/server.tsx";
import { Team } from "./pages/team/team.tsx";
import { ToolPage } from "./pages/tools/tool.tsx";
import { Tools } from "./pages/tools/tools.tsx";
import { EndpointPage } from "./pages/webhooks/endpoint.tsx";
import { Webhooks } from "./pages/webhooks/endpoints.tsx";

export const ROUTES: Record<string, FunctionComponent<PageProps>> = {
  "/": Overview,
  "/inbox/:uuid?": Inbox,
  "/assistants": Assistants,
  "/assistants/:id/:tab?": AssistantPage,
  "/calls": Calls,
  "/calls/:id": CallPage,
  "/conversations": Conversations,
  "/conversations/:uuid": ConversationPage,
  "/knowledgebases": Knowledgebases,
  "/knowledgebases/:id": KnowledgebasePage,
  "/tools": Tools,
  "/tools/:id": ToolPage,
  "/numbers/:tab?": Numbers,
  "/campaigns": Campaigns,
  "/campaigns/:id/:tab?": CampaignPage,
  "/leads": Leads,
  "/leads/blocked": BlockedNumbers,
  "/leads/:id": LeadPage,
  "/webhooks": Webhooks,
  "/webhooks/deliveries": Deliveries,
  "/webhooks/deliveries/:id": DeliveryPage,
  "/webhooks/endpoints/:id": EndpointPage,
  "/ledger": Ledger,
  "/keys": Keys,
  "/team": Team,
  "/audit": Audit,
  "/server": ServerPage,
};
