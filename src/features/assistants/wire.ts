// Assistants in the contract's JSON: the full record of lists and single reads, the short one of
// the outbound list, and the small answer to create and update.
import { Type, type Static } from "@sinclair/typebox";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros, isoOrNull } from "#core/system.ts";
import { Moment, savedOf, TIMES } from "#http/answers.ts";
import type { Assistant } from "./assistants.ts";
import type { BuiltInTool } from "./built-in-tools.ts";
import { maskedKey } from "./calcom-keys.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Catalogs } from "./catalogs.ts";
import { findWarnings, WarningsSchema, type Warning } from "./warnings.ts";
import {
  ASSISTANT_STATUSES, ASSISTANT_TYPES, AssistantSettings, MODES, NoiseCancellation,
  noiseCancellationOf, type AssistantSettings as Settings,
} from "./settings.ts";

const { webhook_url: WebhookUrl, ...shown } = AssistantSettings.properties;
const sayingOf = (name: keyof Settings): string => String(shown[name as "record"].description);
/** Settings that are sent as numbers, but answered as text with two decimals. */
const Decimal = (name: keyof Settings, example: string) => Type.String({
  pattern: "^\\d+\\.\\d{2}$", ...about(`${sayingOf(name)} With two decimals.`, example),
});
const ZeroOrOne = (name: keyof Settings) => Type.Union(
  [Type.Literal(0), Type.Literal(1)], about(`${sayingOf(name)} 1 means yes.`));
const Phrases = (kind: string) => Type.Array(Type.String(), about(
  `Short phrases said while the answer is prepared: ${kind} ones.`, ["One moment."]));
const Unused = (what: string) => Type.Null(about(`${what}: always null, for older clients.`));

export const AssistantSchema = Type.Object({
  id: Type.Integer(about("The assistant's id, used in all `/user` requests.", 1)),
  uuid: Type.String(about(
    "The public id, used to start conversations.",
    "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11")),
  user_id: Type.Integer(about("The account it belongs to.", 1)),
  name: Type.String(about("The name, shown in lists and records.", "Front desk")),
  type: OneOf(ASSISTANT_TYPES, about("Whether it answers calls (inbound) or makes them (outbound).")),
  status: OneOf(ASSISTANT_STATUSES, about("active or inactive. An inactive assistant neither"
    + " answers nor makes calls.")),
  mode: OneOf(MODES, about("How it talks; see Create an assistant.")),
  folder_id: Nullable(Type.Integer(about("The folder it is in; null for none.", 1))),
  label_ids: Type.Array(Type.Integer(), about("Its labels.", [1])),
  phone_number_id: Nullable(Type.Integer(about("Its number; null for none.", 1))),
  engine_id: Unused("An engine"),
  synthesizer_id: Unused("A synthesizer"),
  transcriber_id: Unused("A transcriber"),
  instance_id: Type.Integer(about("The instance it runs on; there is only one.", 1)),
  language: Unused("A language record; see `language_id`"),
  flows_platform_id: Unused("A flow"),
  ...shown,
  webhook_url: WebhookUrl,
  fillers: ZeroOrOne("fillers"),
  end_call_on_voicemail: ZeroOrOne("end_call_on_voicemail"),
  enable_noise_cancellation: Type.Boolean(about(
    "Whether noise is removed before speech is recognised, in at least some calls.", true)),
  noise_cancellation: NoiseCancellation,
  llm_temperature: Decimal("llm_temperature", "0.10"),
  voice_stability: Decimal("voice_stability", "0.70"),
  voice_similarity: Decimal("voice_similarity", "0.50"),
  speech_speed: Decimal("speech_speed", "1.00"),
  ambient_sound_volume: Decimal("ambient_sound_volume", "0.50"),
  tools: Type.Array(Type.Object({
    type: Type.String(about("Which built-in tool.", "end_call")),
    data: Type.Record(Type.String(), Type.Unknown(), about("Its settings.", {})),
  }), about("Built-in tools it may use.")),
  filler_config: Type.Object({
    neutral: Phrases("neutral"), negative: Phrases("sorry"), positive: Phrases("glad"),
    question: Phrases("thoughtful"),
  }, about("The phrases set, completed by those of the language.")),
  warnings: WarningsSchema,
  ...TIMES,
  deleted_at: Nullable(Moment("When it was deleted; null if it was not.")),
}, named("Assistant", "An assistant with all its settings."));

/** The contract has this field, but there is only one instance. */
const INSTANCE_ID = 1;

const zeroOrOne = (value: boolean): 0 | 1 => (value ? 1 : 0);

function toolWire(tool: BuiltInTool) {
  const { type, ...data } = maskedKey(tool);
  return { type, data };
}

/** Settings whose form in answers differs from the stored one. */
function respelled(settings: Settings, catalogs: Catalogs) {
  return {
    fillers: zeroOrOne(settings.fillers),
    end_call_on_voicemail: zeroOrOne(settings.end_call_on_voicemail),
    enable_noise_cancellation: settings.enable_noise_cancellation ?? true,
    noise_cancellation: noiseCancellationOf(settings.enable_noise_cancellation),
    llm_temperature: settings.llm_temperature.toFixed(2),
    voice_stability: settings.voice_stability.toFixed(2),
    voice_similarity: settings.voice_similarity.toFixed(2),
    speech_speed: settings.speech_speed.toFixed(2),
    ambient_sound_volume: settings.ambient_sound_volume.toFixed(2),
    tools: settings.tools.map(toolWire),
    filler_config: { ...catalogs.fillers(settings.language_id), ...settings.filler_config },
  };
}

export async function assistantWire(
  assistant: Assistant,
  catalogs: Catalogs,
  capabilities: Capabilities,
): Promise<Static<typeof AssistantSchema>> {
  const { settings } = assistant;
  return {
    id: assistant.id,
    uuid: assistant.uuid,
    user_id: assistant.accountId,
    name: assistant.name,
    type: assistant.type,
    status: assistant.status,
    mode: assistant.mode,
    folder_id: assistant.folderId,
    label_ids: assistant.labelIds,
    phone_number_id: assistant.phoneNumberId,
    engine_id: null,
    synthesizer_id: null,
    transcriber_id: null,
    instance_id: INSTANCE_ID,
    language: null,
    flows_platform_id: null,
    ...settings,
    ...respelled(settings, catalogs),
    warnings: await findWarnings(assistant, catalogs, capabilities),
    created_at: isoMicros(assistant.createdAt),
    updated_at: isoMicros(assistant.updatedAt),
    deleted_at: isoOrNull(assistant.deletedAt),
  };
}

export const OutboundSchema = Type.Pick(AssistantSchema, [
  "id", "user_id", "name", "type", "mode", "status", "voice_id", "language_id", "timezone",
  "initial_message", "system_prompt", "variables", "webhook_url", "is_webhook_active",
  "created_at", "updated_at",
], named("OutboundAssistant", "An outbound assistant, with the settings shown in lists."));

export function outboundWire(assistant: Assistant): Static<typeof OutboundSchema> {
  const { settings } = assistant;
  return {
    id: assistant.id,
    user_id: assistant.accountId,
    name: assistant.name,
    type: assistant.type,
    mode: assistant.mode,
    status: assistant.status,
    voice_id: settings.voice_id,
    language_id: settings.language_id,
    timezone: settings.timezone,
    initial_message: settings.initial_message,
    system_prompt: settings.system_prompt,
    variables: settings.variables,
    webhook_url: settings.webhook_url,
    is_webhook_active: settings.is_webhook_active,
    created_at: isoMicros(assistant.createdAt),
    updated_at: isoMicros(assistant.updatedAt),
  };
}

export const SavedSchema = Type.Object({
  ...savedOf(Type.Pick(
    AssistantSchema, ["id", "uuid", "name", "status", "type", "mode"],
    named("AssistantHead", "An assistant, as returned by create and update."))).properties,
  warnings: WarningsSchema,
});

export function savedWire(
  message: string,
  { id, uuid, name, status, type, mode }: Assistant,
  warnings: Warning[],
): Static<typeof SavedSchema> {
  return { message, data: { id, uuid, name, status, type, mode }, warnings };
}
