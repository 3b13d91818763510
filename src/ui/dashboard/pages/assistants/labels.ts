// The texts for each setting: its label, and what its values mean. One table, so that fields, the
// server's complaints and the search over settings use the same words. Keyed by the API's names
// without indexes of lists: `tools.phone_number`.
import { words } from "#ui/dashboard/kit/format.ts";

interface Told {
  label: string;
  hint?: string;
}

const LABELS: Record<string, Told> = {
  name: { label: "Name", hint: "Its name in lists, records and transfers, e.g. Front desk." },
  type: { label: "Type" },
  timezone: { label: "Time zone", hint: "{{current_date}} and {{current_time}} use it." },
  phone_number_id: { label: "Phone number" },
  folder_id: { label: "Folder" },
  label_ids: { label: "Labels" },
  status: { label: "Status" },

  initial_message: { label: "Greeting" },
  system_prompt: { label: "Prompt", hint: "Who it is, what it knows and how it behaves." },
  variables: { label: "Variables and their defaults" },

  mode: { label: "Mode" },
  llm_model_id: { label: "Model" },
  multimodal_model_id: { label: "Model" },
  chat_llm_fallback_id: { label: "Model in text chats" },
  llm_temperature: {
    label: "Temperature",
    hint: "0 says the same thing in the same words, 1 varies most. For support, e.g. 0.2.",
  },
  turn_detection_threshold: {
    label: "How loud speech must be",
    hint: "0 counts the faintest sound as speech, 1 only loud speech, e.g. 0.5.",
  },

  language_id: { label: "Language" },
  secondary_language_ids: { label: "Other languages it understands" },
  voice_id: { label: "Voice" },
  speech_speed: { label: "Speed", hint: "0.7 is slowest, 1 the voice’s own pace, 1.2 fastest." },
  voice_stability: { label: "Stability", hint: "0 is the most expressive, 1 the most even, e.g. 0.7." },
  voice_similarity: {
    label: "Similarity", hint: "0 varies most, 1 stays closest to the original voice, e.g. 0.5.",
  },
  tts_emotion_enabled: { label: "Emotion in the voice" },
  recogniser_hints: {
    label: "Words callers are likely to say",
    hint: "Names and terms, one per line: speech recognition listens for them.",
  },
  synthesizer_provider_id: { label: "Voice engine" },
  transcriber_provider_id: { label: "Speech recognition" },

  allow_interruptions: { label: "Callers can interrupt it" },
  wait_for_customer: { label: "The caller speaks first" },
  noise_cancellation: {
    label: "Noise cancellation",
    hint: "On the telephone it makes clean speech harder to understand.",
  },
  endpoint_type: { label: "The end of a turn is recognised by" },
  endpoint_sensitivity: {
    label: "How soon it answers",
    hint: "0 waits longer (1.2 s of silence), 1 answers sooner (0.3 s), e.g. 0.5 (0.75 s).",
  },
  interrupt_sensitivity: {
    label: "How easily it is interrupted",
    hint: "0: only loud, longer speech interrupts. 1: the faintest word does. E.g. 0.5.",
  },
  min_interrupt_words: {
    label: "Words that interrupt it",
    hint: "0: any speech interrupts. 2: a “yes” alone does not.",
  },
  max_duration: {
    label: "Longest call (s)", hint: "20 to 1200 seconds, then the call ends, e.g. 600 for 10 minutes.",
  },
  max_silence_duration: {
    label: "Ask a silent caller after (s)",
    hint: "1 to 360 seconds without a word before it asks whether anyone is there, e.g. 40.",
  },
  max_initial_silence_duration: {
    label: "Hang up on callers who never speak after (s)",
    hint: "1 to 120 seconds from the start, e.g. 20. Empty: it asks them as in any silence.",
  },
  ringing_time: {
    label: "Let it ring for (s)", hint: "1 to 60 seconds, for calls it makes, e.g. 30.",
  },
  reengagement_interval: {
    label: "Ask again every (s)",
    hint: "7 to 600 seconds between questions while nobody answers, e.g. 30. After three it hangs up.",
  },
  conversation_inactivity_timeout: {
    label: "End a chat without messages after (min)",
    hint: "1 to 1440 minutes, e.g. 30. It opens again with the next message.",
  },
  reengagement_prompt: { label: "What to do when nobody speaks" },
  fillers: { label: "Fillers while it thinks", hint: "Short words such as “One moment”." },
  filler_config: { label: "Phrases" },
  "filler_config.neutral": { label: "Neutral phrases" },
  "filler_config.positive": { label: "Positive phrases" },
  "filler_config.negative": { label: "Negative phrases" },
  "filler_config.question": { label: "Question phrases" },
  ambient_sound: { label: "Background sound" },
  ambient_sound_volume: {
    label: "Background volume", hint: "0 is silent, 1 as loud as the voice, e.g. 0.5.",
  },
  record: { label: "Record calls", hint: "Tell people where the law requires it." },
  end_call_on_voicemail: { label: "Hang up on voicemail" },
  voice_mail_message: { label: "Message to leave", hint: "Empty: none." },

  tools: { label: "Built-in functions" },
  tool_ids: { label: "Your tools" },
  knowledgebase_id: { label: "Knowledgebase" },
  knowledgebase_mode: { label: "How it is used" },

  widget_settings: { label: "The widget’s look" },
  "widget_settings.enabled": {
    label: "Show the widget", hint: "Off: pages with its tag show nothing.",
  },
  "widget_settings.theme": { label: "Theme" },
  "widget_settings.color": { label: "Colour" },
  "widget_settings.position": { label: "Position" },
  "widget_settings.language": { label: "Widget language" },
  "widget_settings.remember_days": {
    label: "Days a visitor’s browser remembers the conversation",
    hint: "In all its tabs, e.g. 7. 0: each tab has a conversation of its own, until it is closed.",
  },
  "widget_settings.form": {
    label: "Asks questions before the chat",
    hint: "A chat starts only with the required answers; they become variables.",
  },
  "widget_settings.form.title": { label: "Form title" },
  "widget_settings.form.text": { label: "Below the title" },
  "widget_settings.form.fields": { label: "Form questions" },
  "widget_settings.form.fields.label": { label: "Question" },
  "widget_settings.form.fields.name": {
    label: "Variable", hint: "Letters, digits and underscores, e.g. order_number.",
  },
  "widget_settings.greeting": {
    label: "Greets visitors on its own",
    hint: "A line beside the button, shown to each visitor once in a while.",
  },
  "widget_settings.greeting.text": { label: "Line beside the button" },
  "widget_settings.greeting.after_seconds": {
    label: "After (s)", hint: "0 to 3600 seconds on the page, e.g. 10.",
  },
  "widget_settings.greeting.again_days": {
    label: "Show again after (days)", hint: "0 to 365 days for the same visitor, e.g. 7.",
  },
  "widget_settings.texts": {
    label: "Your own texts",
    hint: "One per line: the text’s name as in data/widget-texts, an equals sign, your text.",
  },
  "widget_settings.avatar": { label: "Assistant’s picture" },
  "widget_settings.attachments": {
    label: "Visitors can attach images and PDF",
    hint: "Up to 10 MB each. A model that can look at them does; people see them in the inbox.",
  },
  "widget_settings.transcripts": {
    label: "Visitors can have the chat sent by e-mail",
    hint: "Needs a mail server. To the address they enter, a few times an hour.",
  },
  "widget_settings.ratings": {
    label: "Visitors can rate each reply",
    hint: "A thumb up or down; in the history and in webhooks as “rating”.",
  },
  "widget_settings.satisfaction": {
    label: "Visitors are asked to rate the chat",
    hint: "One to five, with a comment, when it is over.",
  },
  allowed_origins: {
    label: "Allowed origins", hint: "One per line, e.g. https://www.example.com; * for any.",
  },

  desk: { label: "People" },
  "desk.visitor_may_ask": {
    label: "Visitors can ask for a person", hint: "The chat widget shows “Talk to a person”.",
  },
  "desk.assistant_may_ask": {
    label: "The assistant can ask for a person",
    hint: "With the reason and a summary, as a note that visitors do not see.",
  },
  "desk.after_tool_failures": {
    label: "Ask for a person after failed functions",
    hint: "1 to 10 in a row, e.g. 2. Empty: never.",
  },
  "desk.after_unanswered": {
    label: "Ask for a person after failed replies",
    hint: "1 to 10 in a row, e.g. 2. Empty: never.",
  },
  "desk.words": { label: "Words that ask for a person", hint: "One per line, e.g. complaint." },
  "desk.notify_emails": { label: "E-mail these addresses when somebody is waiting" },
  "desk.office_hours": {
    label: "People are available at certain hours",
    hint: "Outside these hours visitors see when somebody is back.",
  },

  is_webhook_active: {
    label: "After a call", hint: "Receives transcript, evaluation, cost and recording.",
  },
  webhook_url: { label: "After a call: URL" },
  send_webhook_only_on_completed: {
    label: "Only for completed calls", hint: "Not for unanswered ones.",
  },
  include_recording_in_webhook: { label: "With a link to the recording" },
  inbound_webhook_url: {
    label: "Before an inbound call",
    hint: "Asked for variables while the phone rings; the call waits two seconds at most.",
  },
  conversation_ended_webhook_url: {
    label: "After a chat", hint: "Receives the messages when a conversation has ended.",
  },
  conversation_ended_retrigger: { label: "Again when the chat continues and ends again" },

  daily_spend_cap: {
    label: "Daily spending limit (USD)",
    hint: "E.g. 25. Days are in UTC. Empty: the server’s own cap. 0: nothing that costs money.",
  },

  post_call_evaluation: {
    label: "Evaluate calls",
    hint: "After a call, the model fills in these fields from its transcript.",
  },
  post_call_schema: { label: "Evaluation fields" },
  "post_call_schema.name": {
    label: "Name", hint: "3 to 16 lowercase letters, digits or underscores, e.g. appointment_made.",
  },
  "post_call_schema.description": { label: "What to find out" },
};

/** `tools.0.phone_number` without the index. */
const plain = (name: string): string => name.replaceAll(/\.\d+(?=\.|$)/g, "");
const toldOf = (name: string): Told | undefined =>
  Object.hasOwn(LABELS, plain(name)) ? LABELS[plain(name)] : undefined;

/**
 * Registers the text for a member of a list, where that list is defined: the functions' members.
 */
export function tell(name: string, told: Told): void {
  LABELS[name] ??= told;
}

export function labelOf(name: string): string {
  const [root = "", ...rest] = plain(name).split(".");
  return toldOf(name)?.label ?? (rest.length > 0 ? words(rest.at(-1) ?? "") : words(root));
}

/** For fields outside of fields.tsx. */
export function about(name: string): { setting: string; label: string; hint?: string } {
  const { label, hint } = toldOf(name) ?? { label: labelOf(name) };
  return { setting: name, label, ...(hint === undefined ? {} : { hint }) };
}

export const tellings = (): [name: string, told: Told][] => Object.entries(LABELS);

/** The API's words for the choices, which have labels here. */
const CHOICES = /: it is one of .+\.$/;

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** The server's complaint about a field, with its label in place of its API name. */
export function reworded(name: string, message: string): string {
  const parts = name.split(".").map((_, at, all) => all.slice(at).join("."));
  for (const part of parts) {
    const spoken = escaped(part.replaceAll("_", " "));
    const found = new RegExp(`^(The (selected )?)?${spoken}( field| format)?\\b`, "i").exec(message);
    if (found) {
      const [whole] = found;
      const complaint = message.slice(whole.length).trim().replace(CHOICES, ".");
      return `“${labelOf(name)}” ${complaint}`;
    }
  }
  return message;
}
