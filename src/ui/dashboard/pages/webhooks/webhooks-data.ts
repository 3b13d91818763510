// What the pages of webhooks share: the records, and how they are asked for.
import type { paths } from "#client/client.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";

export type Endpoint =
  paths["/user/webhook-endpoints/{id}"]["get"]["responses"][200]["content"]["application/json"]["data"];
export type Delivery =
  paths["/user/webhook-deliveries/{id}"]["get"]["responses"][200]["content"]["application/json"]["data"];

export const TABS = [
  { id: "endpoints", label: "Endpoints", href: "#/webhooks" },
  { id: "deliveries", label: "Deliveries", href: "#/webhooks/deliveries" },
];

/** No event announces changes of endpoints. */
export function useEndpoints() {
  const api = useApi();
  const data = useData("webhook endpoints", async () =>
    (await unwrap(api.GET("/user/webhook-endpoints"))).data);
  useFocusReload(data.reload);
  return data;
}

/** Without the scheme, with which every URL begins. */
export const shortUrl = (url: string): string => url.replace(/^https?:\/\//, "");
