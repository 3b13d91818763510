// The groups of operations in the OpenAPI document and its viewer, in their order there.

export const TAGS = {
  "Account": "Who you are, what was spent, and what happened in the last days.",
  "API keys": "Keys for programs: made, listed and revoked. A key is shown once.",
  "Members": "People of the account: who may do what, how they sign in, and who did what.",
  "Streams": "What happens in the account, as it happens, as server-sent events that resume.",
  "Assistants": "Create, read, change and delete assistants and their webhooks.",
  "Assistant lookups": "What an assistant can be given: languages, models, voices, numbers.",
  "Folders": "Sort assistants: each is in one folder at most.",
  "Labels": "Sort assistants: each has any number of labels.",
  "Tools": "Your own HTTP endpoints that an assistant may call while it talks.",
  "Knowledgebases": "Documents and websites an assistant can look things up in.",
  "Calendar": "Opening hours and appointments an assistant offers and books.",
  "Conversations": "Text conversations: public ones by their uuid, the account's own by key.",
  "Calls": "Telephone and web calls: place, watch, steer, list and delete them.",
  "Campaigns": "Call many people, within hours and days, with retries.",
  "Leads": "People a campaign calls, and numbers nobody may call.",
  "Phone numbers": "Buy numbers, connect your own telephone system over SIP.",
  "Webhooks": "Signed deliveries of events to your server, with replay.",
  "OpenAI": "The same assistants for clients that speak OpenAI's chat completions.",
  "MCP": "The same API as tools for MCP clients.",
  "Server": "Health, metrics and this document, at the root of the host.",
} as const;

export type Tag = keyof typeof TAGS;
