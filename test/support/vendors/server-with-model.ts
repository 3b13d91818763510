// What the tests of other people's protocols share: the real server, a scripted model, an endpoint
// for a tool, accounts of their own.
import OpenAI from "openai";
import { startEndpoint } from "#support/endpoint.ts";
import { startScriptedModel } from "./scripted-model.ts";
import { newAssistant, startTestServer, type TestServer } from "#support/server.ts";

/** What the scripted model says unless told otherwise. */
export const REPLY = Array.from({ length: 20 }, (_, index) => `t${index} `).join("");

export const clientOf = (key: string, { url }: TestServer): OpenAI =>
  new OpenAI({ apiKey: key, baseURL: `${url}/api/v1`, maxRetries: 0 });

export async function startProtocolWorld() {
  const model = await startScriptedModel();
  const endpoint = await startEndpoint();
  const env = { PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" };
  const server = await startTestServer({ env });
  return {
    model, endpoint, env, server,
    /** An account of its own, so that tests look at its balance alone. */
    fresh: async (settings: Record<string, unknown> = {}, balance = "5.00") => {
      const account = await server.newAccount({ balance });
      const { uuid, id } = await newAssistant(server, settings, account.key);
      return { ...account, uuid, id, openai: clientOf(account.key, server) };
    },
    balanceOf: async (key: string): Promise<number> =>
      (await server.call("GET", "/user/me", { key })).body.total_balance as number,
    /** An assistant whose model looks something up before it says "Done." */
    withTool: async () => {
      const { key } = await server.newAccount();
      const { body } = await server.call("POST", "/user/tools", {
        key,
        body: {
          name: "look_up", description: "Looks up", endpoint: endpoint.url, method: "POST",
          schema: [{ name: "item", type: "string", description: "What" }],
        },
      });
      const { uuid } = await newAssistant(server, { tool_ids: [body.data.id] }, key);
      model.script(({ messages }) => messages.at(-1)?.role === "tool"
        ? { tokens: ["Do", "ne."] }
        : {
            tokens: ["Let me look. "],
            toolCalls: [{ id: "c1", name: "look_up", arguments: '{"item":"bikes"}' }],
            finishReason: "tool_calls",
          });
      return { key, uuid, openai: clientOf(key, server) };
    },
    /** Says half of the reply, then waits for the function it returns. */
    holdHalfway: (): (() => void) => {
      const gate = Promise.withResolvers<void>();
      model.script(() => ({ tokens: ["One ", "two."], hold: gate.promise, holdAfter: 1 }));
      return gate.resolve;
    },
    close: async (): Promise<void> => {
      await server.close();
      await Promise.all([model.close(), endpoint.close()]);
    },
  };
}
