// The wire of folders and labels: the same operations for both, under the documentation's singular
// path and the plural that some clients use.
import { Type, type Static } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { about, named, NonBlank, Nullable, OneOf } from "#core/schema.ts";
import { IdOf, MessageSchema, savedOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { pageEnvelope, pageQuery, PageSchema, PER_PAGE_DEFAULT } from "#http/pagination.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { COLORS, type Group, type Groups, type GroupUseCases } from "./groups.ts";

interface Kind {
  useCases: GroupUseCases;
  /** How messages begin, such as `Folder`. */
  noun: "Folder" | "Label";
  /** `/user/folder` */
  single: string;
  /** `/user/folders` */
  plural: string;
}

const NAME_CHARS_MAX = 255;

const Name = NonBlank(NAME_CHARS_MAX, about("The name, unique within the account.", "Berlin"));
const Color = Nullable(OneOf(COLORS, about("The colour in lists; null for none.", "teal")));
const OptionalColor = Type.Optional(Color);
const CreateBody = Type.Object({ name: Name, color: OptionalColor });
const ChangeBody = Type.Object({ name: Type.Optional(Name), color: OptionalColor });

const GroupSchema = Type.Object({
  id: Type.Integer(about("The id, never reused.", 1)),
  name: Name,
  color: Color,
  assistants_count: Type.Integer(about("The number of assistants with it, not counting deleted "
    + "ones.",
    3)),
}, named("Group", "A folder or a label."));
const SavedSchema = savedOf(GroupSchema);

export function groupRoutes({ folders, labels }: Groups): Route[] {
  const kinds: Kind[] = [
    { useCases: folders, noun: "Folder", single: "/user/folder", plural: "/user/folders" },
    { useCases: labels, noun: "Label", single: "/user/label", plural: "/user/labels" },
  ];
  return kinds.flatMap((kind) => [listRoute(kind), createRoute(kind), ...itemRoutes(kind)]);
}

const describe = ({ noun }: Kind) => ({ tag: `${noun}s` as const, errorShape: "message" as const });

function listRoute(kind: Kind): Route {
  const { useCases, plural } = kind;
  return keyRoute({
    ...describe(kind),
    method: "GET",
    path: plural,
    summary: `List ${kind.noun.toLowerCase()}s, in pages`,
    query: Type.Object(pageQuery()),
    responses: { 200: { description: "A page", schema: PageSchema(GroupSchema) } },
    handle: async ({ caller, query, http, baseUrl }) => {
      const { page = 1, per_page: perPage = PER_PAGE_DEFAULT } = query;
      const { items, total } = await useCases.page(caller.accountId, { page, perPage });
      const path = `${baseUrl}${plural}`;
      return json(200, pageEnvelope(
        { items: items.map(groupWire), total }, { path, query: http.query, page, perPage }));
    },
  });
}

function createRoute(kind: Kind): Route {
  const { useCases, noun } = kind;
  return keyRoute({
    ...describe(kind),
    method: "POST",
    path: kind.single,
    aliases: [kind.plural],
    summary: `Create a ${noun.toLowerCase()}`,
    body: CreateBody,
    responses: { 201: { description: "Created", schema: SavedSchema } },
    handle: async ({ caller, body }) => {
      const group = await useCases.create(caller.accountId, body.name, body.color);
      return json(201, { message: `${noun} created successfully`, data: groupWire(group) });
    },
  });
}

function itemRoutes(kind: Kind): Route[] {
  const { useCases, noun, single, plural } = kind;
  const notFound = `${noun} not found`;
  const item = {
    ...describe(kind), path: `${single}/{id}`, aliases: [`${plural}/{id}`], notFound,
    params: { id: IdOf(noun.toLowerCase(), `GET ${plural}`) },
  };
  return [
    keyRoute({
      ...item,
      method: "PUT",
      summary: `Change a ${noun.toLowerCase()}; a null color clears it`,
      body: ChangeBody,
      responses: { 200: { description: "Changed", schema: SavedSchema } },
      handle: async ({ caller, id, body }) => {
        const group = await useCases.update(caller.accountId, id, body);
        return json(200, { message: `${noun} updated successfully`, data: groupWire(group) });
      },
    }),
    keyRoute({
      ...item,
      method: "DELETE",
      summary: `Delete a ${noun.toLowerCase()}; its assistants are kept`,
      responses: { 200: { description: "Deleted", schema: MessageSchema } },
      handle: async ({ caller, id }) => {
        if (!await useCases.remove(caller.accountId, id)) throw new Fault(404, notFound);
        return json(200, { message: `${noun} deleted successfully` });
      },
    }),
  ];
}

function groupWire({ id, name, color, assistantsCount }: Group): Static<typeof GroupSchema> {
  return { id, name, color, assistants_count: assistantsCount };
}
