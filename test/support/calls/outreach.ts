// What tests of leads and campaigns have at hand: accounts with an assistant that calls.
import assert from "node:assert/strict";
import { newAssistant, type TestServer } from "#support/server.ts";

export interface Outreach {
  key: string;
  assistantId: number;
}

export function outreachOf(server: TestServer) {
  return {
    /** An account of its own, with an assistant that calls. */
    newCaller: async (settings: object = {}): Promise<Outreach> => {
      const { key } = await server.newAccount({ balance: "20" });
      const { id } = await newAssistant(server, {
        name: "Caller", type: "outbound", status: "active", post_call_evaluation: false, ...settings,
      }, key);
      return { key, assistantId: id };
    },
    newCampaign: async ({ key, assistantId }: Outreach, fields: object = {}): Promise<number> => {
      const { body } = await server.call("POST", "/user/campaigns", {
        key, body: { name: "Autumn", assistant_id: assistantId, ...fields },
      });
      return body.data.id as number;
    },
    leadsOf: async (key: string, query = "") =>
      (await server.call("GET", `/user/leads?per_page=100${query}`, { key })).body as
        { total: number; data: Record<string, unknown>[] },
    add: async (
      key: string, campaign: number, number: string, more: object = {},
    ): Promise<void> => {
      const { status } = await server.call("POST", "/user/lead", {
        key, body: { campaign_id: campaign, phone_number: number, ...more },
      });
      assert.equal(status, 200);
    },
  };
}
