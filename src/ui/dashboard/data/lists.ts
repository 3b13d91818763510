// The account's short lists that several pages need, for their choices and for the names of what
// records refer to by number.
import type { Parley } from "#client/client.ts";
import { unwrap, useApi } from "./session.tsx";
import { SHARED, useData, type Data } from "./use-data.ts";

const loadAssistants = (api: Parley) => unwrap(api.GET("/user/assistants"));
const loadCampaigns = (api: Parley) => unwrap(api.GET("/user/campaigns"));
const loadNumbers = async (api: Parley) =>
  (await unwrap(api.GET("/user/phone-numbers/all"))).data;

type Row<Load extends (api: Parley) => Promise<unknown[]>> = Awaited<ReturnType<Load>>[number];
export type Assistant = Row<typeof loadAssistants>;
export type Campaign = Row<typeof loadCampaigns>;
export type OwnNumber = Row<typeof loadNumbers>;

/** No event announces a change: callers that need the current list pass a smaller `freshMs`. */
export function useAssistants({ freshMs } = SHARED): Data<Assistant[]> {
  const api = useApi();
  return useData("assistants", () => loadAssistants(api), [], { freshMs });
}

/** The account, its balance, and the newest trouble its visitors had. */
export function useMe() {
  const api = useApi();
  return useData(
    "me", () => unwrap(api.GET("/user/me")),
    ["balance_changed", "conversation_failed", "reply_failed"], SHARED);
}

/** Oldest first, as the server has them. */
export function useCampaigns(): Data<Campaign[]> {
  const api = useApi();
  return useData("campaigns", () => loadCampaigns(api), ["campaign_status_changed"], SHARED);
}

const NUMBER_EVENTS = [
  "phone_number_purchased", "phone_number_renewed", "phone_number_grace",
  "phone_number_suspended", "phone_number_released",
];

export function useOwnNumbers(): Data<OwnNumber[]> {
  const api = useApi();
  return useData("numbers", () => loadNumbers(api), NUMBER_EVENTS, SHARED);
}
