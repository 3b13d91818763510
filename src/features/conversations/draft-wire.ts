// Drafts of an assistant's settings, as routes accept them: an owner tries them before saving. Used
// by the test routes and the widget's preview.
import { Type } from "@sinclair/typebox";
import type { Assistant, Assistants } from "#features/assistants/assistants.ts";
import { UpdateBody } from "#features/assistants/settings.ts";
import { errorsOf, shownAs } from "#core/schema.ts";
import { compileValidation } from "#http/validation.ts";

export const DRAFT_SETTINGS = Type.Optional(
  Type.Record(Type.String(), Type.Unknown(), shownAs(UpdateBody)));

/** Errors of a draft name the same fields as those of an update. */
const readSettings = compileValidation(UpdateBody);

/** The assistant as the change would make it; refused as an update would be. */
export function draftOf(
  assistants: Pick<Assistants, "draft">,
  { accountId, assistantId }: { accountId: number; assistantId: number },
  settings: object = {},
): Promise<Assistant> {
  const given = readSettings(settings);
  return assistants.draft(accountId, assistantId, given, errorsOf(given));
}
