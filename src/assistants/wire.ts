// Assistants as the wire shows them: the record of lists and single reads, the short one of the
// outbound list, and the little that create and update answer.
import { Type, type Static } from "@sinclair/typebox";
import { Nullable } from "../core/schema.ts";
import { isoMicros } from "../core/system.ts";
import type { Assistant } from "./assistants.ts";
import type { BuiltInTool } from "./built-in-tools.ts";
import { maskedKey } from "./calcom-keys.ts";
import type { Catalogs } from "./catalogs.ts";
import { findWarnings, WarningsSchema, type Capabilities, type Warning } from "./warnings.ts";
import {
  ASSISTANT_STATUSES, ASSISTANT_TYPES, AssistantSettings, MODES, oneOf, type AssistantSettings as
  Settings,
} from "./settings.ts";

export const MessageSchema = Type.Object({ message: Type.String() });
export const InvalidSchema = Type.Object({
  message: Type.String(),
  errors: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
});

const Decimal = Type.String({ pattern: "^\\d+\\.\\d{2}$", description: "Two decimals" });
const ZeroOrOne = Type.Union([Type.Literal(0), Type.Literal(1)]);
const Phrases = Type.Array(Type.String());
const Instant = Type.String({ description: "ISO 8601, UTC, microseconds" });

const { webhook_url: WebhookUrl, ...shown } = AssistantSettings.properties;

export const AssistantSchema = Type.Object({
  id: Type.Integer(),
  uuid: Type.String(),
  user_id: Type.Integer(),
  name: Type.String(),
  type: oneOf(ASSISTANT_TYPES),
  status: oneOf(ASSISTANT_STATUSES),
  mode: oneOf(MODES),
  folder_id: Nullable(Type.Integer()),
  label_ids: Type.Array(Type.Integer()),
  phone_number_id: Nullable(Type.Integer()),
  engine_id: Type.Null(),
  synthesizer_id: Type.Null(),
  transcriber_id: Type.Null(),
  instance_id: Type.Integer(),
  language: Type.Null(),
  flows_platform_id: Type.Null(),
  ...shown,
  webhook_url: WebhookUrl,
  fillers: ZeroOrOne,
  end_call_on_voicemail: ZeroOrOne,
  llm_temperature: Decimal,
  voice_stability: Decimal,
  voice_similarity: Decimal,
  speech_speed: Decimal,
  ambient_sound_volume: Decimal,
  tools: Type.Array(Type.Object({
    type: Type.String(), data: Type.Record(Type.String(), Type.Unknown()),
  })),
  filler_config: Type.Object({
    neutral: Phrases, negative: Phrases, positive: Phrases, question: Phrases,
  }),
  warnings: WarningsSchema,
  created_at: Instant,
  updated_at: Instant,
  deleted_at: Nullable(Instant),
});

/** There is one instance; the field is the contract's. */
const INSTANCE_ID = 1;

const zeroOrOne = (value: boolean): 0 | 1 => (value ? 1 : 0);

function toolWire(tool: BuiltInTool) {
  const { type, ...data } = maskedKey(tool);
  return { type, data };
}

/** The settings whose spelling on the wire is not the stored one. */
function respelled(settings: Settings, catalogs: Catalogs) {
  return {
    fillers: zeroOrOne(settings.fillers),
    end_call_on_voicemail: zeroOrOne(settings.end_call_on_voicemail),
    llm_temperature: settings.llm_temperature.toFixed(2),
    voice_stability: settings.voice_stability.toFixed(2),
    voice_similarity: settings.voice_similarity.toFixed(2),
    speech_speed: settings.speech_speed.toFixed(2),
    ambient_sound_volume: settings.ambient_sound_volume.toFixed(2),
    tools: settings.tools.map(toolWire),
    filler_config: { ...catalogs.fillers(settings.language_id), ...settings.filler_config },
  };
}

export function assistantWire(
  assistant: Assistant,
  catalogs: Catalogs,
  capabilities: Capabilities,
): Static<typeof AssistantSchema> {
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
    warnings: findWarnings(assistant, catalogs, capabilities),
    created_at: isoMicros(assistant.createdAt),
    updated_at: isoMicros(assistant.updatedAt),
    deleted_at: assistant.deletedAt === null ? null : isoMicros(assistant.deletedAt),
  };
}

export const OutboundSchema = Type.Pick(AssistantSchema, [
  "id", "user_id", "name", "type", "mode", "status", "voice_id", "language_id", "timezone",
  "initial_message", "system_prompt", "variables", "webhook_url", "is_webhook_active",
  "created_at", "updated_at",
]);

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
  message: Type.String(),
  warnings: WarningsSchema,
  data: Type.Pick(AssistantSchema, ["id", "uuid", "name", "status", "type", "mode"]),
});

export function savedWire(
  message: string,
  { id, uuid, name, status, type, mode }: Assistant,
  warnings: Warning[],
): Static<typeof SavedSchema> {
  return { message, data: { id, uuid, name, status, type, mode }, warnings };
}
