// The settings of the whole account: so far, only its time zone.
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { about, named, Nullable, TimeZone } from "#core/schema.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import type { Accounts } from "./accounts.ts";

const TIME_ZONE = Nullable({
  ...TimeZone("The time zone must be a valid time zone."),
  ...about("Where the days of lists, charts and reports begin and end, as IANA calls it; null: "
    + "nobody has chosen, so in UTC.", "Europe/Berlin"),
});
const SettingsSchema = Type.Object({ time_zone: TIME_ZONE }, 
  named("AccountSettings", "The settings of the whole account."));

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
      summary: "The settings of the account",
      responses: { 200: { description: "The settings", schema: SettingsSchema } },
      handle: async ({ caller: { accountId } }) => json(200, await settingsOf(accountId)),
    }),
    keyRoute({
      ...common,
      method: "PUT",
      summary: "Change the settings of the account",
      description: "What is left out stays as it is.",
      body: Type.Object({ time_zone: Type.Optional(TIME_ZONE) }),
      responses: { 200: { description: "The settings", schema: SettingsSchema } },
      handle: async ({ caller: { accountId }, body }) => {
        if (body.time_zone !== undefined) await accounts.setTimeZone(accountId, body.time_zone);
        return json(200, await settingsOf(accountId));
      },
    }),
  ];
}
