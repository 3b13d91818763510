// Markdown: converted to HTML and read as a page, so that its headings, lists and tables are kept.
import { marked } from "marked";
import type { BlockList } from "./blocks.ts";
import { readHtml } from "./html.ts";

export const readMarkdown = (text: string): BlockList =>
  readHtml(marked.parse(text, { async: false })).list;
