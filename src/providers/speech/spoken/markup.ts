// Takes markup out of a text that is to be said: Markdown where it stands as markup, and emoji.
// Signs that mean something (`john_doe_x@example.com`, `2*3*4`) are left alone. Text comes piece by
// piece, so a pair of signs need not be in one piece.
import type { Edit, Spelling } from "./spelling.ts";

/** What one piece leaves behind for the next. */
export interface MarkupState {
  isLineStart: boolean;
}

export const MARKUP_START: MarkupState = { isLineStart: true };

const OPENS = String.raw`(?<=^|[\s([{"'“„«¿¡*_~-])`;
const CLOSES = String.raw`(?=$|[\s)\]}"'”“».,;:!?…*_~-])`;
/** Runs of two or more signs are never said, whether or not their partner is in this piece. */
const STRONG = new RegExp(
  String.raw`${OPENS}(?:\*{2,3}|__|~~)(?=[^\s*_~])|(?<=[^\s*_~])(?:\*{2,3}|__|~~)${CLOSES}`, "g");
const EMPHASIS = ["*", "_"].map((sign) => {
  const inner = String.raw`[^\s${sign}](?:[^${sign}\n]{0,400}[^\s${sign}])?`;
  return new RegExp(`${OPENS}[${sign}](${inner})[${sign}]${CLOSES}`, "dg");
});
const CODE = /(?:`{1,3})([^`\n]{1,400})`{1,3}/dg;
const LINK = /!?\[([^\]\n]{0,400})\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+"[^"\n]*")?\)/dg;
const AUTO_LINK = /<((?:https?:\/\/|mailto:)[^\s<>]{1,400}|[^\s<>@]{1,64}@[^\s<>@]{3,255})>/dg;
const ESCAPE = /\\([\\`*_{}[\]()#+\-.!|~>])/dg;
const KEYCAP = /([0-9#*])\uFE0F?\u20E3/dgu;
const PICTURE = String.raw`(?![©®™ℹ])\p{Extended_Pictographic}|\p{Regional_Indicator}`;
const EMOJI = new RegExp(String.raw`(?:${PICTURE})(?:\p{Emoji_Modifier}|\uFE0F|\u200D|${PICTURE})*`, "gu");

const RULE = String.raw`(?:[-*_][ \t]?){3,}[ \t]*(?=\n|$)`;
const FENCE = String.raw`(?:\`{3,}|~{3,})[^\n\`]*(?=\n|$)`;
const TABLE_RULE = String.raw`\|?[ \t]*:?-{3,}:?[ \t]*(?:\|[ \t]*:?-{3,}:?[ \t]*)*\|?[ \t]*(?=\n|$)`;
const MARKS = String.raw`(?:#{1,6}|>|[-*+](?:[ \t]+\[[ xX]\])?)(?=[ \t])`;
const LINE_START = new RegExp(
  String.raw`(^|\n)([ \t]*)(?:${RULE}|${FENCE}|${TABLE_RULE}|${MARKS}(?:[ \t]+${MARKS})*)`, "g");
const TABLE_ROW = /(^|\n)[ \t]*\|([^\n]+)\|[ \t]*(?=\n|$)/g;

/** Removes the markup; returns the state in which the next piece begins. */
export function dropMarkup(spelling: Spelling, { isLineStart }: MarkupState): MarkupState {
  const written = spelling.text;
  const isAtStart = ({ index }: RegExpExecArray): boolean =>
    isLineStart || index > 0 || written.startsWith("\n");
  spelling.replace(LINE_START, (match) => (isAtStart(match) ? match[1] ?? "" : null));
  if (spelling.text.includes("|")) spelling.edit(tableSigns(spelling.text, isLineStart));
  for (const pattern of [LINK, AUTO_LINK, CODE]) spelling.unwrap(pattern);
  spelling.replace(STRONG, "");
  for (const pattern of [...EMPHASIS, ESCAPE, KEYCAP]) spelling.unwrap(pattern);
  spelling.replace(EMOJI, "");
  const lineFrom = written.lastIndexOf("\n") + 1;
  return { isLineStart: written.slice(lineFrom).trim() === "" && (lineFrom > 0 || isLineStart) };
}

/** Cells of a row are said with a comma between them. */
function tableSigns(text: string, isLineStart: boolean): Edit[] {
  return [...text.matchAll(TABLE_ROW)].flatMap((match) => {
    if (match.index === 0 && !isLineStart && match[1] === "") return [];
    const signs = [...match[0].matchAll(/[ \t]*\|/g)].map(({ 0: sign, index }) => ({
      from: match.index + index, to: match.index + index + sign.length, by: ",",
    }));
    return signs.map((edit, number) =>
      ({ ...edit, by: number === 0 ? "" : number === signs.length - 1 ? "." : "," }));
  });
}
