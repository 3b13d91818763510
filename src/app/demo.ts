// What an empty data folder gets, so that a newcomer's first minute works: an account with money, a
// key, an assistant, a conversation to send to.
import type { Features } from "./features.ts";
import { START } from "#core/command.ts";
import { formatMicros, MICROS_PER_DOLLAR } from "#core/money.ts";

const DEMO_BALANCE_MICROS = 5 * MICROS_PER_DOLLAR;

export interface Demo {
  token: string;
  assistantUuid: string;
  conversationUuid: string;
  balance: string;
}

const PROMPT = `You are the front desk of {{company}}, a small bicycle workshop. Be brief and friendly.
Opening hours: Monday to Friday from 9:00 to 18:00, Saturday from 10:00 to 14:00, closed on Sunday.
A standard service costs 79 dollars and takes two working days.
A new inner tube costs 15 dollars and is fitted while you wait.
We rent city bikes for 20 dollars a day and electric bikes for 45 dollars a day.
The workshop is at 12 Harbour Street, next to the ferry terminal.`;

/** Null when there is an account already. */
export async function seedDemo(
  { accounts, assistants, conversations }: Pick<
    Features, "accounts" | "assistants" | "conversations"
  >,
): Promise<Demo | null> {
  if ((await accounts.list()).length > 0) return null;
  const account = await accounts.create("Demo", "demo@example.org");
  await accounts.credit(account.id, DEMO_BALANCE_MICROS, "demo:opening-balance");
  const { token } = await accounts.createKey(account.id, "demo");
  const assistant = await assistants.create(account.id, {
    name: "Demo front desk",
    type: "inbound",
    mode: "pipeline",
    status: "active",
    voice_id: 1,
    language_id: 1,
    llm_model_id: 1,
    timezone: "UTC",
    initial_message: "Hello, this is {{company}}. How can I help?",
    system_prompt: PROMPT,
    variables: { company: "Harbour Bikes" },
    // The offline model cannot judge a call.
    post_call_evaluation: false,
  });
  const conversation = await conversations.create({ assistant, type: "widget", variables: {} });
  return {
    token,
    assistantUuid: assistant.uuid,
    conversationUuid: conversation.uuid,
    balance: formatMicros(DEMO_BALANCE_MICROS),
  };
}

const LINES = [
  "Hello. When are you open on Saturday?", "What does a standard service cost?",
  "And where is the workshop?", "Thank you, goodbye.",
];

/** A call of about a minute. */
const TRY_CALL = ({ assistantUuid }: Demo): string =>
  JSON.stringify({ assistant_id: assistantUuid, lines: LINES });

export function printDemo(demo: Demo, url: string): void {
  const api = `${url}/api`;
  process.stdout.write(`
  Parley is running.

    dashboard   ${url}/
    API key     ${demo.token}   (shown only now; signs in)
    base URL    ${api}
    assistant   ${demo.assistantUuid}
    balance     ${demo.balance} USD
    API docs    ${url}/docs

  Watch a streamed, billed reply:

    curl -N ${api}/conversations/${demo.conversationUuid}/messages -H 'Accept: text/event-stream' -H 'Content-Type: application/json' -d '{"message":"When are you open on Saturday, and what does a service cost?"}'

  Talk with it (by microphone, in Chromium, Firefox or Safari):

    ${url}/talk/${demo.assistantUuid}

  Watch a live call: a simulated caller calls the assistant. The dashboard shows the call under
  Calls, where you can listen in, say something and end it (no telephone or speech engine needed):

    curl ${api}/user/try_call -H 'Authorization: Bearer ${demo.token}' -H 'Content-Type: application/json' -d '${TRY_CALL(demo)}'

  Point it at a real model: PARLEY_MODEL_URL=http://127.0.0.1:11434/v1 ${START}

`);
}
