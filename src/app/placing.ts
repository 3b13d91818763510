// Composition root, calls that clients ask for: placed by any node that can. Called by mount.ts.
import { sharePlacing } from "#cluster/placing.ts";
import { createPlacing, type PlacingOptions } from "#features/calls/placing.ts";
import type { Parts } from "./mount.ts";

type CallPlacing = Pick<PlacingOptions, "findAssistant" | "findAssistantByUuid" | "numberOf">
  & { place: ReturnType<typeof createPlacing>["here"] };

export function createCallPlacing(
  { features, storage, nodes: { nodeId }, wire, log }: Parts,
): CallPlacing {
  const { assistants, calls, voice, phoneNumbers } = features;
  const known: Omit<CallPlacing, "place"> = {
    findAssistant: assistants.find,
    findAssistantByUuid: assistants.findByUuid,
    numberOf: async ({ accountId, phoneNumberId }) => phoneNumberId === null
      ? null
      : (await storage.phoneNumbers.find(accountId, phoneNumberId))?.phoneNumber ?? null,
  };
  const { here, anywhere } = createPlacing({
    ...known, calls, ...voice, placedBy: phoneNumbers.sipTrunks.placedBy,
  });
  const others = wire && sharePlacing({ nodeId, wire, log }, here);
  return { ...known, place: (asked) => anywhere(asked, others && others.at) };
}
