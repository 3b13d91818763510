// The settings of the whole account: so far, only its time zone.
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { about, named, Nullable, TimeZone } from "#core/schema.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import type { Accounts } from "./accounts.ts";

const TIME_ZONE = Nullable({
  ...TimeZone("The time zone must be a valid time zone."),
  ...about("The IANA time zone of lists, charts and reports; null if not set, which means UTC.",
    "Europe/Berlin"),
});
const SettingsSchema = Type.Object({ time_zone: TIME_ZONE }, 
  named("AccountSettings", "The account's settings."));

const common = { tag: "Account", errorShape: "message", path: "/user/settings" } as const;

export function settingsRoutes({ accounts }: { accounts: Accounts }): Route[] {
  const settingsOf = async (accountId: number) => {
    const account = await accounts.find(accountId);
    if (!account) throw new Fault(404, "Account not found.");
    return { time_zone: account.timeZone };
  };
  return [
    keyRoute({
      ...common,
      method: "GET",
      summary: "Get the account's settings",
      responses: { 200: { description: "The settings", schema: SettingsSchema } },
      handle: async ({ caller: { accountId } }) => json(200, await settingsOf(accountId)),
    }),
    keyRoute({
      ...common,
      method: "PUT",
      summary: "Change the account's settings",
      description: "Fields left out keep their values.",
      body: Type.Object({ time_zone: Type.Optional(TIME_ZONE) }),
      responses: { 200: { description: "The settings", schema: SettingsSchema } },
      handle: async ({ caller: { accountId }, body }) => {
        if (body.time_zone !== undefined) await accounts.setTimeZone(accountId, body.time_zone);
        return json(200, await settingsOf(accountId));
      },
    }),
  ];
}
