// The groups of operations in the OpenAPI document and its viewer, in their order there.

export const TAGS = {
  "Account": "Your account, its spending and its recent activity.",
  "API keys": "Create, list and revoke keys for programs. A key is shown only once.",
  "Members": "The account's members: roles, sign-in and the audit log.",
  "Streams": "Live events of the account as server-sent events that can be resumed.",
  "Assistants": "Create, read, update and delete assistants and their webhooks.",
  "Assistant lookups": "Languages, models, voices and numbers to choose from for an assistant.",
  "Folders": "Sort assistants into folders; each is in at most one.",
  "Labels": "Tag assistants with any number of labels.",
  "Tools": "Your own HTTP endpoints that an assistant can call during a conversation.",
  "Knowledgebases": "Documents and websites an assistant can look things up in.",
  "Calendar": "Opening hours and appointments an assistant offers and books.",
  "Conversations": "Text conversations: addressed by uuid in public, or managed with an API key.",
  "Calls": "Make, watch, control, list and delete telephone and web calls.",
  "Campaigns": "Call many people within set hours and days, with retries.",
  "Leads": "People a campaign calls, and blocked numbers.",
  "Phone numbers": "Buy numbers, or connect your own telephone system over SIP.",
  "Webhooks": "Signed delivery of events to your server, with replay.",
  "OpenAI": "Your assistants for clients of OpenAI's chat completions API.",
  "MCP": "This API as tools for MCP clients.",
  "Server": "Health, metrics and this document, at the root of the host.",
} as const;

export type Tag = keyof typeof TAGS;
