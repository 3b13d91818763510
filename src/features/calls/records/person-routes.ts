// The route that deletes everything stored about one person.
import { Type, type Static } from "@sinclair/typebox";
import type { By } from "#features/accounts/audit.ts";
import { fieldFault } from "#core/faults.ts";
import { about } from "#core/schema.ts";
import { isUuid } from "#core/values.ts";
import { json, type HttpRequest } from "#http/exchange.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import { readPhoneNumber } from "#features/leads/phone.ts";
import type { Person, PersonData } from "./person-data.ts";

interface PersonRouteOptions {
  personData: PersonData;
  byOf(caller: Caller, http: HttpRequest): Promise<By>;
}

const Body = Type.Object({
  conversation_id: Type.Optional(Type.String({
    maxLength: 64, ...about(
      "One of the person's conversations. Also covers the same visitor's or customer's other "
      + "conversations with the same assistant, and the calls in them. If the customer's "
      + "identifier is a telephone number, also covers everything `phone_number` would.",
      "9b2f6c1e-5d0a-4c1b-8f0e-2a7d3c4b5e6f"),
  })),
  phone_number: Type.Optional(Type.String({
    maxLength: 64, ...about(
      "The person's number, instead of a conversation. Covers calls with this number, leads with "
      + "it and their calls, and conversations whose customer identifier it is.",
      "+4915112345678"),
  })),
  dry_run: Type.Optional(Type.Boolean({
    default: false, ...about("True: count only; nothing is deleted."),
  })),
}, { examples: [{ phone_number: "+4915112345678", dry_run: true }] });
const count = (what: string, example: number) => Type.Integer(about(what, example));

function personOf(
  { conversation_id: uuid, phone_number: text }: Pick<
    Static<typeof Body>, "conversation_id" | "phone_number">,
): Person {
  if ((uuid === undefined) === (text === undefined)) {
    throw fieldFault("conversation_id", "Name either a conversation_id or a phone_number.");
  }
  if (uuid !== undefined) {
    if (isUuid(uuid)) return { conversationId: uuid.toLowerCase() };
    throw fieldFault("conversation_id", "The conversation id must be a valid UUID.");
  }
  const number = readPhoneNumber(text ?? "");
  if (!number) throw fieldFault("phone_number", "Invalid phone number");
  return { phoneNumber: number.phoneNumber };
}

export function personRoutes({ personData, byOf }: PersonRouteOptions): Route[] {
  return [keyRoute({
    tag: "Conversations",
    errorShape: "message",
    method: "POST",
    path: "/user/people/delete",
    summary: "Delete everything stored about a person",
    description: "Deletes conversations with their messages, files and notes, calls with their "
      + "transcripts and recordings, and leads with their secondary contacts. Costs stay in the "
      + "ledger, the audit log records who deleted the data, and a blocked number stays blocked. "
      + "Repeat the request to delete what was busy the first time.",
    body: Body,
    responses: {
      200: {
        description: "What was deleted, or would be",
        schema: Type.Object({
          dry_run: Type.Boolean(about("Whether this was a dry run.", false)),
          conversations: count("Conversations deleted.", 3),
          calls: count("Calls deleted.", 1),
          leads: count("Leads deleted.", 1),
          busy: count(
            "Conversations and calls kept because they are in progress, plus the conversation you "
            + "named if any are. Always 0 when counting only.",
            0),
        }),
      },
      404: { description: "No such conversation" },
    },
    handle: async ({ caller, body, http }) => {
      const { accountId } = caller;
      const { dry_run: isDry = false } = body;
      const person = personOf(body);
      const counts = isDry
        ? await personData.count(accountId, person)
        : await personData.remove(accountId, person, await byOf(caller, http));
      return json(200, { dry_run: isDry, ...counts });
    },
  })];
}
