// The API's codes that the dashboard shows as words (dashboard/kit/format.ts), listed so that the
// languages' catalogs have them: no page names them. Only scripts/texts.ts reads the lists.
/** `ai_toggled`: AI toggled. */
export const wordsOf = (code: string): string => {
  const text = code.replaceAll(/[-_]/g, " ");
  return (text.charAt(0).toUpperCase() + text.slice(1)).replace(/^Ai\b/, "AI");
};

export const CODES: readonly string[] = [
  // Calls, how they ended and who answered.
  "inbound", "outbound", "web", "initiated", "ringing", "in-progress", "ended", "completed",
  "ended_by_customer", "ended_by_assistant", "no-answer", "busy", "failed",
  "customer_hung_up", "assistant_ended", "silence", "no_first_words", "max_duration", "voicemail",
  "balance", "transferred", "operator", "rejected", "no_answer", "carrier_failed", "speech_failed",
  "model_failed", "server_restarted", "media_timeout", "human", "machine", "unknown",
  "announcing", "asking", "briefing", "connected", "dialling", "over", "caller_left", "declined",
  "refused", "timed_out", "cold", "warm",
  // Leads, campaigns, numbers, documents, deliveries, the ledger.
  "created", "scheduled", "processing", "rescheduled", "reached-max-retries", "blacklisted",
  "draft", "active", "inactive", "paused", "stopped", "requested", "balance_too_low",
  "assistant_unavailable", "no_leads", "carrier_failures", "deleted", "grace", "suspended",
  "released", "empty", "pending", "delivered", "dead", "disabled", "booked", "cancelled",
  "answered", "live", "draining", "call", "message", "number", "credit",
  // Conversations and assistants.
  "api", "widget", "test", "whatsapp", "text", "pipeline", "multimodal", "dualplex", "assistant",
  "person", "waiting", "asked", "assigned", "handed_back", "taken_over", "interrupted",
  "neutral", "positive", "negative", "question", "off", "office", "city", "forest", "crowded_room",
  "cafe", "nature", "none", "hold_music", "light", "dark", "modern", "male", "female",
  "bottom-right", "bottom-left", "bottom-center", "middle-right", "middle-left", "top-right",
  "top-left", "top-center", "textarea", "boolean", "select", "multiselect", "radio", "checkbox",
  "phone", "email", "multiemail", "url", "address", "tel", "string", "array",
  // What a point of the overview's charts covers.
  "hour", "day", "week",
  // Roles.
  "owner", "admin", "builder", "viewer",
  // Weekdays.
  "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
  // Events and messages of webhooks.
  "ai_toggled", "balance_changed", "balance_low", "call_created", "call_deleted", "call_ended",
  "call_status_changed", "call_transfer_changed", "call_whispered", "callback_done",
  "callback_requested", "campaign_status_changed", "conversation_created", "conversation_ended",
  "conversation_evaluated", "conversation_failed", "conversation_rated", "conversation_read",
  "desk_changed", "document_status_changed", "lead_status_changed", "message_added", "note_added",
  "phone_number_grace", "phone_number_purchased", "phone_number_released",
  "phone_number_renewed", "phone_number_suspended", "reply_failed", "reply_failure_explained",
  "reply_rated", "transcript_added", "post_call", "inbound_call",
];

/**
 * The server's sentences for people, which the dashboard translates whole (dashboard/kit/said.ts).
 */
export const SENTENCES: readonly string[] = [
  "Insufficient balance. Please top up your account.",
  "Insufficient balance to make call. Please top up your account.",
  "Insufficient balance to start the campaign. Please top up your account.",
  "You do not have permission for this resource",
  "Your API key does not have permission for this resource",
  "Insufficient permissions", "Unauthenticated.", "The given data was invalid.",
  "The server is overloaded.", "The server is restarting. Please try again.",
  "Invalid phone number", "Invalid phone number format.",
  "Invalid phone number format. Please use E.164 format (e.g. +1234567890)",
  "The number lacks the + and the country code, as in +1 555 010 0204.",
  "The spreadsheet has cut the number's digits: make its column text and enter it again.",
  "The file is not a valid XLSX workbook: save it as XLSX or CSV.",
  "The workbook is encrypted or in an old Excel format: save it as XLSX or CSV.",
  "The phone number is on the do-not-call list.", "This phone number is already in use.",
  "The account has too many live calls.", "The call has not ended yet.",
  "The lead is being called right now.", "The webhook endpoint is disabled: enable it first.",
  "The conversation is still answering an earlier message.",
  "The document is being read. Please try again in a moment.",
  "The e-mail address or the password is wrong.", "The current password is wrong.",
  "The e-mail address contains an invisible character: type it by hand.",
  "The password is too easy to guess.", "This link was used, withdrawn or has expired.",
  "Assistant not found", "Conversation not found", "Campaign not found", "Tool not found",
  "No voice on this server speaks it.", "No recogniser on this server understands it.",
  "The engine does not know the language.", "This server has no such engine.",
  // Settings of an assistant that have no effect here, each followed by the reason.
  "It is no longer in this server's catalog.", "Another model answers instead of this one.",
  "This server no longer has this model.", "Choose another model.",
  "Calls run as a pipeline of recogniser, language model and voice.",
  "No tool is called, because the offline model answers and does not call tools.",
  "Calls are refused: no voice on this server speaks the language.",
  "No engine on this server speaks the language of the voice.",
  "Another engine speaks in calls.", "Another engine recognises speech in calls.",
  "The voice engine of this server does not support emotion: ElevenLabs and OpenAI's newer models do.",
  "The voice engine of this server does not support it: only ElevenLabs does.",
  "No recogniser of this server takes hints: those of Deepgram, AssemblyAI, Soniox, Gladia, Cartesia, Azure and OpenAI do.",
  "Calls are understood in the first language only: this server has no recogniser for several languages, such as Deepgram's nova-3 and multilingual Flux, AssemblyAI's multilingual models, Soniox, Gladia or OpenAI.",
  "The caller is not handed over: that assistant no longer exists.",
  "Call deleted successfully", "Lead created successfully", "Lead updated successfully",
  "Lead deleted successfully", "Phone number blocked successfully",
  "Phone number unblocked successfully",
  // What templates are for.
  "Answers questions from a list you write, and takes a callback for the rest.",
  "Finds out who wants to come when and for what, and notes it after the call.",
  "Asks what somebody needs, by when and for how much, and marks who is worth a call.",
  "Asks your shop's own system where an order is, with a tool it may call.",
  "Calls people, asks three questions and fills in a form with the answers.",
  "Reads your website and answers from its pages, saying which one.",
  // Why a document or a page was not read.
  "No text was found in the document.",
  "The document could not be read.",
  "The document is too large to read.",
  "The document is too large to read once it is unpacked.",
  "The document is nested too deeply to read.",
  "The document needed too much memory to read.",
  "The document took too long to read.",
  "The file is no longer stored: delete the document and add it again.",
  "The file is not a PDF document.",
  "The file is not a text file.",
  "The file is not a valid CSV table.",
  "The file is not a valid DOCX document.",
  "The file is not a valid PPTX presentation.",
  "The PDF could not be read.",
  "The PDF has no text layer (it is probably a scan).",
  "The PDF is damaged.",
  "The PDF is protected by a password.",
  "The text of the PDF cannot be read, because its fonts lack a character map: export it again from the program that made it.",
  "The table has too many columns to read.",
  "The workbook has no visible sheet.",
  "The workbook is too large to read.",
  "The address is not a readable page.",
  "The address is not a sitemap.",
  "The sitemap cannot be decompressed, or is too large.",
  "No page in the sitemap.",
  "There was no page to read.",
  "The page did not answer in time.",
  "The page is nested too deeply to read.",
  "The page is too large to read.",
  "The page redirects to another site.",
  "The page redirects too often.",
  "The page was sent compressed, which is not supported.",
  "The site's robots.txt does not allow this page to be read.",
  "The page could not be reached: its host name does not resolve.",
  "The page could not be reached: the connection was refused.",
  // Types of numbers and documents.
  "Dedicated Number", "Caller ID", "Normal", "Questions and answers", "Website", "Text",
];
