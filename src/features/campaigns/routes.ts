// The wire of campaigns: create, list, read, change, start and stop, delete.
import { Type, type Static } from "@sinclair/typebox";
import { WEEKDAYS, type Weekday } from "#core/days.ts";
import { Fault } from "#core/faults.ts";
import {
  about, collectingErrors, errorsOf, named, NonBlank, Nullable, OneOf, prepared, TimeZone,
  withMessage,
} from "#core/schema.ts";
import { isoMicros, isoOrNull } from "#core/system.ts";
import {
  dataOf, IdOf, listOf, MessageSchema, MISSING_RIGHT, Moment, savedOf, TIMES,
} from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { LEAD_STATUSES } from "#features/leads/leads.ts";
import type { Callers } from "./callers.ts";
import type { Campaign, CampaignFields, Campaigns } from "./campaigns.ts";
import { figureRoutes, PauseSchema, wirePause } from "./figures-routes.ts";
import type { Pause } from "./figures.ts";
import { RETRY_MINUTES_MAX } from "./rules.ts";

interface CampaignRoutesOptions {
  campaigns: Campaigns;
  callers: Pick<Callers, "findAssistant" | "ownsNumber">;
  /** Concurrent calls that the account's plan allows. */
  parallelMax(accountId: number): Promise<number>;
}

const NAME_CHARS_MAX = 255;
const PARALLEL_MAX = 10;
const PARALLEL_DEFAULT = 3;
const NUMBERS_MAX = 100;
const INVALID = "The given data was invalid.";

const Clock = (field: string, description: string, example: string) => Type.String({
  ...about(description, example),
  pattern: "^([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$",
  ...withMessage(`The ${field} does not match the format H:i.`),
});
const Day = OneOf(WEEKDAYS, {
  ...prepared((value) => (typeof value === "string" ? value.toLowerCase() : value)),
  ...withMessage("The allowed days must be names of weekdays."),
});

const REQUIRED = {
  name: NonBlank(NAME_CHARS_MAX, about("The name.", "Spring offer")),
  assistant_id: Type.Integer(about("The `id` of the outbound assistant that makes the calls.", 1)),
};
const OPTIONAL = {
  timezone: Type.Optional({
    ...TimeZone("The timezone must be a valid time zone."),
    ...about(
      "The IANA time zone of hours and days, used if a lead's own is not known. Defaults to the "
      + "assistant's.",
      "Europe/Berlin"),
  }),
  max_calls_in_parallel: Type.Optional(Type.Integer({
    minimum: 1, maximum: PARALLEL_MAX, default: PARALLEL_DEFAULT,
    ...about("Concurrent calls; the account's plan may allow fewer."),
  })),
  allowed_hours_start_time: Type.Optional(Clock(
    "allowed hours start time", "The time of day calling starts. Defaults to midnight.", "09:00")),
  allowed_hours_end_time: Type.Optional(Clock(
    "allowed hours end time", "The time of day calling stops. Defaults to midnight.", "18:00")),
  allowed_days: Type.Optional(Type.Array(Day, {
    minItems: 1, maxItems: 7, ...about("Weekdays on which to call. Defaults to all.", ["monday"]),
  })),
  max_retries: Type.Optional(Type.Integer({
    minimum: 1, maximum: 5, default: 3, ...about("The maximum number of calls after the first."),
  })),
  retry_interval: Type.Optional(Type.Integer({
    minimum: 10, maximum: RETRY_MINUTES_MAX, default: 60, ...about("Minutes to wait before calling "
      + "a lead again."),
  })),
  retry_on_voicemail: Type.Optional(Type.Boolean({
    default: false, ...about("Whether to call again if an answering machine answered."),
  })),
  retry_on_goal_incomplete: Type.Optional(Type.Boolean({
    default: false, ...about("Whether to call a lead again until the goal is reached; "
      + "needs `goal_completion_variable`."),
  })),
  goal_completion_variable: Type.Optional(Nullable(Type.String({
    maxLength: 255,
    ...about("The boolean field of the assistant's `post_call_schema` that marks the goal; null "
      + "for none.",
      "status"),
  }))),
  mark_complete_when_no_leads: Type.Optional(Type.Boolean({
    default: true, ...about("Whether the campaign completes once no leads are left; if not, it "
      + "waits for more."),
  })),
  phone_number_ids: Type.Optional(Type.Array(Type.Integer(), {
    maxItems: NUMBERS_MAX, uniqueItems: true,
    ...about("Numbers to call from, in turn; empty for the assistant's.", [1]),
  })),
};
export const CreateBody = Type.Object({ ...REQUIRED, ...OPTIONAL }, collectingErrors);
const UpdateBody = Type.Object(
  { ...Type.Partial(Type.Object(REQUIRED)).properties, ...OPTIONAL }, collectingErrors);
const StatusBody = Type.Object({
  campaign_id: Type.Integer(about("The campaign's `id`.", 1)),
  action: Type.Optional(Type.Unknown(about("`start` or `stop`.", "start"))),
  status: Type.Optional(Type.Unknown(about("The same, for older clients.", "start"))),
  reason: Type.Optional(Nullable(Type.String({
    maxLength: NAME_CHARS_MAX,
    ...about("Your reason for stopping it, shown with the campaign.", "Wrong list"),
  }))),
});
const optional = (name: keyof typeof OPTIONAL, example?: unknown) =>
  about(String(OPTIONAL[name].description), ...(example === undefined ? [] : [example]));

const CampaignSchema = Type.Object({
  id: Type.Integer(about("The campaign's number.", 1)),
  name: REQUIRED.name,
  status: Type.String(about("The campaign's status: draft, in-progress, stopped, completed …",
    "in-progress")),
  assistant_id: REQUIRED.assistant_id,
  timezone: Type.String(optional("timezone", "Europe/Berlin")),
  max_calls_in_parallel: Type.Integer(optional("max_calls_in_parallel", 3)),
  mark_complete_when_no_leads: Type.Boolean(optional("mark_complete_when_no_leads")),
  allowed_hours_start_time: Type.String(optional("allowed_hours_start_time", "09:00:00")),
  allowed_hours_end_time: Type.String(optional("allowed_hours_end_time", "18:00:00")),
  allowed_days: Type.Array(Type.String(), optional("allowed_days", ["monday"])),
  max_retries: Type.Integer(optional("max_retries", 3)),
  retry_interval: Type.Integer(optional("retry_interval", 60)),
  retry_on_voicemail: Type.Boolean(optional("retry_on_voicemail")),
  retry_on_goal_incomplete: Type.Boolean(optional("retry_on_goal_incomplete")),
  goal_completion_variable: Nullable(Type.String(about(
    "The boolean field of the assistant's `post_call_schema` that marks the goal; null if none.",
    "status"))),
  phone_number_ids: Type.Array(Type.Integer(), optional("phone_number_ids", [1])),
  calls_made: Type.Integer(about("The number of calls made.", 12)),
  paused_until: Nullable(Moment("When calling resumes after carrier failures; null if not "
    + "paused.")),
  pause: PauseSchema,
  ...TIMES,
}, named("Campaign", "A campaign: calls to many leads, by rules."));
const SavedSchema = savedOf(CampaignSchema);
const StatusSchema = Type.Object({
  campaign_id: Type.Integer(about("The campaign's id.", 1)),
  status: Type.String(about("Its status now.", "in-progress")),
}, named("CampaignStatus", "A campaign's status."));
const DoneSchema = Type.Object({
  message: Type.String(about("What was done.", "Campaign started successfully.")),
  success: Type.Literal(true, about("Always true.")),
  data: StatusSchema,
});
const RefusedSchema = Type.Object({
  message: Type.String(about("The reason.", "Campaign is already in progress.")),
  success: Type.Optional(Type.Literal(false, about("Always false."))),
  ...MISSING_RIGHT,
  data: Type.Optional(StatusSchema),
  errors: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()), about(
    "Invalid fields.", { campaign_id: ["The campaign id field is required."] }))),
}, named("RefusalCampaign", "Why the campaign was not started or stopped."));

const CountsSchema = dataOf(Type.Object(
  Object.fromEntries(LEAD_STATUSES.map((status) =>
    [status, Type.Integer(about(`Leads that are ${status}.`, 3))])),
  named("LeadCounts", "The number of leads in each state.")));
const NO_LEADS = Object.fromEntries(LEAD_STATUSES.map((status) => [status, 0]));

const COMMON = { tag: "Campaigns", errorShape: "message", notFound: "Campaign not found" } as const;
const params = { id: IdOf("campaign", "GET /user/campaigns") };
const missing = { 404: { description: "No such campaign or assistant" } };

const clockOf = (minute: number): string =>
  [Math.floor(minute / 60), minute % 60, 0]
    .map((part) => String(part).padStart(2, "0")).join(":");
const minuteOf = (clock: string): number => {
  const [hours = 0, minutes = 0] = clock.split(":").map(Number);
  return hours * 60 + minutes;
};

const wireCampaign = (
  campaign: Campaign & { pause: Pause | null },
): Static<typeof CampaignSchema> => ({
  id: campaign.id,
  name: campaign.name,
  status: campaign.status,
  assistant_id: campaign.assistantId,
  timezone: campaign.timeZone,
  max_calls_in_parallel: campaign.parallelMax,
  mark_complete_when_no_leads: campaign.completesWhenDone,
  allowed_hours_start_time: clockOf(campaign.startMinute),
  allowed_hours_end_time: clockOf(campaign.endMinute),
  allowed_days: campaign.days,
  max_retries: campaign.maxRetries,
  retry_interval: campaign.retryIntervalMinutes,
  retry_on_voicemail: campaign.retryOnVoicemail,
  retry_on_goal_incomplete: campaign.retryOnGoalIncomplete,
  goal_completion_variable: campaign.goalVariable,
  phone_number_ids: campaign.phoneNumberIds,
  calls_made: campaign.callsMade,
  paused_until: isoOrNull(campaign.pausedUntil),
  pause: wirePause(campaign.pause),
  created_at: isoMicros(campaign.createdAt),
  updated_at: isoMicros(campaign.updatedAt),
});

type Given = Static<typeof UpdateBody>;

/** The fields that were sent, under the record's names. */
function fieldsFrom(given: Given): Partial<CampaignFields> {
  const fields = {
    assistantId: given.assistant_id,
    name: given.name,
    timeZone: given.timezone,
    parallelMax: given.max_calls_in_parallel,
    startMinute: given.allowed_hours_start_time && minuteOf(given.allowed_hours_start_time),
    endMinute: given.allowed_hours_end_time && minuteOf(given.allowed_hours_end_time),
    days: given.allowed_days && WEEKDAYS.filter((day) => given.allowed_days?.includes(day)),
    maxRetries: given.max_retries,
    retryIntervalMinutes: given.retry_interval,
    retryOnVoicemail: given.retry_on_voicemail,
    retryOnGoalIncomplete: given.retry_on_goal_incomplete,
    goalVariable: given.goal_completion_variable,
    completesWhenDone: given.mark_complete_when_no_leads,
    phoneNumberIds: given.phone_number_ids,
  };
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<CampaignFields>;
}

/** Validates what was sent; fields that were not sent are taken from `before`. */
async function assertValid(
  options: CampaignRoutesOptions, accountId: number, given: Given, before: CampaignFields,
): Promise<Partial<CampaignFields>> {
  const errors = { ...errorsOf(given) };
  const changes = fieldsFrom(given);
  const next = { ...before, ...changes };
  const assistant = await options.callers.findAssistant(accountId, next.assistantId);
  const sent = (...names: (keyof CampaignFields)[]): boolean =>
    names.some((name) => changes[name] !== undefined);
  const most = Math.min(PARALLEL_MAX, await options.parallelMax(accountId));
  if (sent("parallelMax") && next.parallelMax > most) {
    errors.max_calls_in_parallel = [`The max calls in parallel may not be greater than ${most}.`];
  }
  if (sent("startMinute", "endMinute") && next.endMinute < next.startMinute) {
    errors.allowed_hours_end_time = ["The allowed hours end time must be after the start time."];
  }
  const { goalVariable, retryOnGoalIncomplete } = next;
  if (sent("goalVariable", "retryOnGoalIncomplete", "assistantId")) {
    const isFlag = assistant?.settings.post_call_schema.some(
      ({ name, type }) => name === goalVariable && type === "bool");
    if (goalVariable === null && retryOnGoalIncomplete) {
      errors.goal_completion_variable = [
        "The goal completion variable field is required when retry on goal incomplete is true."];
    } else if (goalVariable !== null && assistant && !isFlag) {
      errors.goal_completion_variable = [
        "The goal completion variable must be a bool of the assistant's post call schema."];
    }
  }
  const owned = await Promise.all(
    (changes.phoneNumberIds ?? []).map((id) => options.callers.ownsNumber(accountId, id)));
  if (owned.includes(false)) {
    errors.phone_number_ids = ["The selected phone number ids is invalid."];
  }
  if (Object.keys(errors).length > 0) throw new Fault(422, INVALID, { errors });
  if (sent("assistantId") && assistant?.type !== "outbound") {
    throw new Fault(404, "Assistant not found or not an outbound assistant.");
  }
  return changes;
}

async function defaultsFor(
  { callers, parallelMax }: CampaignRoutesOptions, accountId: number, given: Given,
): Promise<CampaignFields> {
  const assistant = await callers.findAssistant(accountId, given.assistant_id ?? 0);
  return {
    assistantId: 0,
    name: "",
    timeZone: assistant?.settings.timezone ?? "UTC",
    parallelMax: Math.max(1, Math.min(PARALLEL_DEFAULT, await parallelMax(accountId))),
    startMinute: 0,
    endMinute: 24 * 60 - 1,
    days: [...WEEKDAYS] as Weekday[],
    maxRetries: 3,
    retryIntervalMinutes: 60,
    retryOnVoicemail: false,
    retryOnGoalIncomplete: false,
    goalVariable: null,
    completesWhenDone: true,
    phoneNumberIds: [],
  };
}

export function campaignRoutes(options: CampaignRoutesOptions): Route[] {
  return [
    ...collectionRoutes(options), statusRoute(options), ...itemRoutes(options),
    ...figureRoutes(options.campaigns),
  ];
}

function collectionRoutes(options: CampaignRoutesOptions): Route[] {
  const { campaigns } = options;
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/campaigns",
      summary: "List campaigns",
      responses: { 200: { description: "All", schema: listOf(CampaignSchema, "All.") } },
      handle: async ({ caller }) =>
        json(200, (await Promise.all(
          (await campaigns.list(caller.accountId)).map(campaigns.withPause))).map(wireCampaign)),
    }),
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/campaigns",
      aliases: ["/user/campaign"],
      summary: "Create a campaign; it calls nobody until it is started",
      body: CreateBody,
      responses: {
        201: { description: "Created", schema: SavedSchema },
        403: { description: "The plan's limit is reached, or the key lacks the right" },
        ...missing,
      },
      handle: async ({ caller, body }) => {
        const { accountId } = caller;
        const defaults = await defaultsFor(options, accountId, body);
        const changes = await assertValid(options, accountId, body, defaults);
        const created = await campaigns.create(accountId, { ...defaults, ...changes });
        return json(201, {
          message: "Campaign created successfully",
          data: wireCampaign(await campaigns.withPause(created)),
        });
      },
    }),
  ];
}

function statusRoute({ campaigns }: CampaignRoutesOptions): Route {
  const refused = (description: string) => ({ description, schema: RefusedSchema });
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/campaigns/update-status",
    summary: "Start or stop a campaign; calls in progress are finished",
    body: StatusBody,
    invalidMessage: INVALID,
    responses: {
      200: { description: "Done", schema: DoneSchema },
      400: refused("No such action, or not possible in the campaign's status"),
      403: refused("The campaign belongs to another account"),
      404: refused("No such campaign"),
      422: refused("The assistant cannot make calls"),
    },
    handle: async ({ caller, body: { campaign_id: id, ...body } }) => {
      const action = body.action ?? body.status;
      if (action !== "start" && action !== "stop") {
        throw new Fault(400, "Invalid action. Must be either 'start' or 'stop'.", {
          extra: { success: false },
        });
      }
      const isStart = action === "start";
      if (isStart) await campaigns.start(caller.accountId, id);
      else await campaigns.stop(caller.accountId, id, body.reason?.trim() || null);
      return json(200, {
        message: `Campaign ${isStart ? "started" : "stopped"} successfully.`,
        success: true,
        data: { campaign_id: id, status: isStart ? "in-progress" : "stopped" },
      });
    },
  });
}

function itemRoutes(options: CampaignRoutesOptions): Route[] {
  const { campaigns } = options;
  const item = {
    ...COMMON, params, path: "/user/campaigns/{id}", aliases: ["/user/campaign/{id}"],
  };
  return [
    keyRoute({
      ...item,
      method: "GET",
      summary: "Read a campaign",
      responses: { 200: { description: "The campaign", schema: CampaignSchema }, ...missing },
      handle: async ({ caller, id }) =>
        json(200, wireCampaign(
          await campaigns.withPause(await campaigns.get(caller.accountId, id)))),
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/campaigns/{id}/lead-counts",
      params,
      summary: "Count leads by state",
      responses: { 200: { description: "Every state", schema: CountsSchema }, ...missing },
      handle: async ({ caller, id }) => json(200, {
        data: { ...NO_LEADS, ...await campaigns.leadCounts(caller.accountId, id) },
      }),
    }),
    ...(["PUT", "PATCH"] as const).map((method) =>
      keyRoute({
        ...item,
        method,
        summary: "Update a campaign",
        body: UpdateBody,
        responses: { 200: { description: "Changed", schema: SavedSchema }, ...missing },
        handle: async ({ caller, id, body }) => {
          const { accountId } = caller;
          const before = await campaigns.get(accountId, id);
          const changes = await assertValid(options, accountId, body, before);
          const changed = await campaigns.update(accountId, id, changes);
          return json(200, {
            message: "Campaign updated successfully",
            data: wireCampaign(await campaigns.withPause(changed)),
          });
        },
      })),
    keyRoute({
      ...item,
      method: "DELETE",
      summary: "Stop and delete a campaign with its leads",
      responses: { 200: { description: "Deleted", schema: MessageSchema }, ...missing },
      handle: async ({ caller, id }) => {
        await campaigns.remove(caller.accountId, id);
        return json(200, { message: "Campaign deleted successfully" });
      },
    }),
  ];
}
