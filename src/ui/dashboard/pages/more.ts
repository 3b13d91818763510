// The pages of the second script, which the dashboard loads on demand (later.tsx). Bundled by
// ../../build.ts beside the first script.
import { AssistantPage } from "./assistants/assistant.tsx";
import { Assistants } from "./assistants/assistants.tsx";
import { Audit } from "./audit/audit.tsx";
import { BlockedNumbers } from "./leads/blocked.tsx";
import { CampaignPage } from "./campaigns/campaign.tsx";
import { Campaigns } from "./campaigns/campaigns.tsx";
import { Deliveries } from "./webhooks/deliveries.tsx";
import { DeliveryPage } from "./webhooks/delivery.tsx";
import { Keys } from "./keys/keys.tsx";
import { KnowledgebasePage } from "./knowledge/knowledgebase.tsx";
import { Knowledgebases } from "./knowledge/knowledgebases.tsx";
import { LeadPage } from "./leads/lead.tsx";
import { Leads } from "./leads/leads.tsx";
import { Ledger } from "./ledger/ledger.tsx";
import { Money } from "./money/money.tsx";
import { Numbers } from "./numbers/numbers.tsx";
import { ServerPage } from "./server/server.tsx";
import { Team } from "./team/team.tsx";
import { ToolPage } from "./tools/tool.tsx";
import { Tools } from "./tools/tools.tsx";
import { EndpointPage } from "./webhooks/endpoint.tsx";
import { Webhooks } from "./webhooks/endpoints.tsx";

export { formatPhone } from "./phone.ts";

export const PAGES = {
  AssistantPage, Assistants, Audit, BlockedNumbers, CampaignPage,
  Campaigns, Deliveries, DeliveryPage, Keys, KnowledgebasePage,
  Knowledgebases, LeadPage, Leads, Ledger, Money, Numbers,
  ServerPage, Team, ToolPage, Tools, EndpointPage,
  Webhooks,
};
