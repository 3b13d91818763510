// The fields of the campaign form, and which of them are sent.
import { WEEKDAYS } from "#core/days.ts";
import type { paths } from "#client/client.ts";
import type { Assistant, Campaign } from "#ui/dashboard/data/lists.ts";

type CampaignBody =
  NonNullable<paths["/user/campaigns"]["post"]["requestBody"]>["content"]["application/json"];

export type Fields = Required<Pick<CampaignBody,
  "name" | "timezone" | "allowed_hours_start_time" | "allowed_hours_end_time" | "allowed_days"
  | "retry_on_voicemail" | "retry_on_goal_incomplete" | "mark_complete_when_no_leads"
  | "phone_number_ids">> & {
    assistant_id: number | null;
    goal_completion_variable: string | null;
    max_calls_in_parallel: number | null;
    max_retries: number | null;
    retry_interval: number | null;
  };

const clock = (time: string): string => time.slice(0, 5);

export const fieldsOf = (campaign: Campaign): Fields => ({
  name: campaign.name,
  assistant_id: campaign.assistant_id,
  timezone: campaign.timezone,
  max_calls_in_parallel: campaign.max_calls_in_parallel,
  allowed_hours_start_time: clock(campaign.allowed_hours_start_time),
  allowed_hours_end_time: clock(campaign.allowed_hours_end_time),
  allowed_days: campaign.allowed_days as Fields["allowed_days"],
  max_retries: campaign.max_retries,
  retry_interval: campaign.retry_interval,
  retry_on_voicemail: campaign.retry_on_voicemail,
  retry_on_goal_incomplete: campaign.retry_on_goal_incomplete,
  goal_completion_variable: campaign.goal_completion_variable,
  mark_complete_when_no_leads: campaign.mark_complete_when_no_leads,
  phone_number_ids: campaign.phone_number_ids,
});

/** Office hours in the assistant's time zone: nobody is called at night by mistake. */
export const newFields = (assistant: Assistant | undefined): Fields => ({
  name: "",
  assistant_id: assistant?.id ?? null,
  timezone: assistant?.timezone ?? "UTC",
  max_calls_in_parallel: 3,
  allowed_hours_start_time: "09:00",
  allowed_hours_end_time: "18:00",
  allowed_days: WEEKDAYS.slice(0, 5),
  max_retries: 3,
  retry_interval: 60,
  retry_on_voicemail: false,
  retry_on_goal_incomplete: false,
  goal_completion_variable: null,
  mark_complete_when_no_leads: true,
  phone_number_ids: [],
});

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The changed fields; an emptied number is left to the server. */
export function changesOf(fields: Fields, before: Fields): Partial<CampaignBody> {
  const changed = Object.entries(fields).filter(([name, value]) =>
    !isSame(value, before[name as keyof Fields])
      && (value !== null || name === "goal_completion_variable"));
  return Object.fromEntries(changed) as Partial<CampaignBody>;
}

/** All fields, for a new campaign. */
export const bodyOf = (fields: Fields): CampaignBody =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null)) as unknown as CampaignBody;
