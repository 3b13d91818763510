// The wire of what the dashboard keeps for an account: its first steps, and the saved views of its
// lists.
import { Type } from "@sinclair/typebox";
import { about, named, NonBlank, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros } from "#core/system.ts";
import { dataOf, IdOf, listOf, MessageSchema, Moment, savedOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { STEPS, type FirstStepCases, type FirstSteps } from "./first-steps.ts";
import { VIEWED_LISTS, type SavedView, type SavedViews } from "./saved-views.ts";

interface FirstDayOptions {
  firstSteps: FirstStepCases;
  savedViews: SavedViews;
}

const StepSchema = Type.Object({
  step: OneOf(STEPS, about(
    "assistant: one exists. reply: it answered in text. document: a search found one. call: one "
      + "was answered. website: a visitor got an answer in the widget.", "reply")),
  done: Type.Boolean(about("Whether the step is done.", true)),
  done_at: Nullable(Moment("When it was done, in UTC."), about("When it was done; null if it is "
    + "not.")),
  name: Nullable(Type.String(about("The name of what completed it; null if not done or unnamed.",
    "Opening hours"))),
  id: Nullable(Type.String(about("What completed it: the assistant's or call's number, or the"
    + " conversation's uuid; null if not done or not accessible.", "12"))),
  uuid: Nullable(Type.String(about("The assistant's uuid; null if an assistant did not complete it.",
    "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11"))),
}, named("FirstStep", "One step of the first steps."));
export const StepsSchema = Type.Object({
  dismissed: Type.Boolean(about("Whether somebody has hidden them.", false)),
  steps: listOf(StepSchema, "The steps, in the recommended order."),
}, named("FirstSteps", "The first steps of an account."));

export const stepsItem = ({ isDismissed, proofs }: FirstSteps) => ({
  dismissed: isDismissed,
  steps: STEPS.map((step) => {
    const proof = proofs[step];
    return {
      step, done: proof !== null, done_at: proof && isoMicros(proof.at),
      name: proof?.name ? proof.name : null, id: proof?.id ? proof.id : null,
      uuid: proof?.uuid ?? null,
    };
  }),
});

const NAME_CHARS_MAX = 80;
const QUERY_CHARS_MAX = 2000;
const VIEW_FIELDS = {
  list: OneOf(VIEWED_LISTS, about("The list.", "calls")),
  name: NonBlank(NAME_CHARS_MAX, about("The name.", "Missed this week")),
  query: Type.String({
    maxLength: QUERY_CHARS_MAX,
    ...about("Filters and columns, as in the query string of the page's address.",
      "status=no-answer"),
  }),
};
const ViewSchema = Type.Object({
  id: Type.Integer(about("Its number.", 1)), ...VIEW_FIELDS,
  created_at: Moment("When it was saved, in UTC."),
}, named("SavedView", "A saved view of a list."));

const viewItem = ({ createdAt, ...view }: SavedView) =>
  ({ ...view, created_at: isoMicros(createdAt) });

const common = { tag: "Account", errorShape: "message" } as const;

export function firstDayRoutes({ firstSteps, savedViews }: FirstDayOptions): Route[] {
  return [
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/first-steps",
      summary: "Get the first steps and which are done",
      responses: { 200: { description: "The list", schema: StepsSchema } },
      handle: async ({ caller }) =>
        json(200, stepsItem(await firstSteps.read(caller.accountId))),
    }),
    keyRoute({
      ...common,
      method: "PUT",
      path: "/user/first-steps",
      summary: "Hide or show the first steps",
      body: Type.Object({ dismissed: StepsSchema.properties.dismissed }),
      responses: { 200: { description: "The list", schema: StepsSchema } },
      handle: async ({ caller: { accountId }, body }) => {
        await firstSteps.dismiss(accountId, body.dismissed);
        return json(200, stepsItem(await firstSteps.read(accountId)));
      },
    }),
    ...viewRoutes(savedViews),
  ];
}

function viewRoutes(savedViews: SavedViews): Route[] {
  return [
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/views",
      summary: "List saved views",
      responses: { 200: { description: "The list",
        schema: dataOf(listOf(ViewSchema, "By name.")) } },
      handle: async ({ caller }) =>
        json(200, { data: (await savedViews.list(caller.accountId)).map(viewItem) }),
    }),
    keyRoute({
      ...common,
      method: "POST",
      path: "/user/views",
      summary: "Save a view; replaces a view of the same list and name",
      body: Type.Object(VIEW_FIELDS),
      responses: { 201: { description: "The view was saved", schema: savedOf(ViewSchema) } },
      handle: async ({ caller, body }) => json(201, {
        message: "View saved successfully",
        data: viewItem(await savedViews.save(caller.accountId, body)),
      }),
    }),
    keyRoute({
      ...common,
      method: "DELETE",
      path: "/user/views/{id}",
      summary: "Delete a saved view",
      notFound: "Saved view not found",
      params: { id: IdOf("saved view", "GET /user/views") },
      responses: { 200: { description: "The view was deleted", schema: MessageSchema } },
      handle: async ({ caller, id }) => {
        await savedViews.remove(caller.accountId, id);
        return json(200, { message: "View deleted successfully" });
      },
    }),
  ];
}
