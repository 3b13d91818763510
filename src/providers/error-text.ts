// The error texts of vendors of models and speech, as operators read them. Used by their adaptors.
import { listOf, recordOf } from "#core/values.ts";

const ERROR_TEXT_CHARS_MAX = 200;
const ERROR_DEPTH_MAX = 5;
const ERRORS_MAX = 10;

/** What a vendor says went wrong, in any of the shapes seen; short, and never with the key. */
export function errorText(value: unknown, key: string | null): string {
  const text = wordsOf(value);
  const shown = key === null || key.length < 4 ? text : text.replaceAll(key, "***");
  return shown.replace(/\s+/g, " ").trim().slice(0, ERROR_TEXT_CHARS_MAX).toWellFormed();
}

/** Vendors answer with nested objects and lists of them; Gemini and FastAPI with lists. */
function wordsOf(value: unknown, depth = 0): string {
  if (typeof value === "string") return value;
  if (depth === ERROR_DEPTH_MAX) return "";
  if (Array.isArray(value)) {
    const all = value.slice(0, ERRORS_MAX).map((one) => wordsOf(one, depth + 1));
    return all.filter((words) => words !== "").join("; ");
  }
  const { detail, error, loc, message, msg } = recordOf(value) ?? {};
  const words = [error, detail, message, msg].map((one) => wordsOf(one, depth + 1)).find(Boolean) ?? "";
  // FastAPI names the field at fault beside the text.
  const place = listOf(loc).filter((part) => typeof part === "string").join(".");
  return place === "" || words === "" ? words : `${place}: ${words}`;
}
