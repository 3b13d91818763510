// Markdown: what it becomes as a page is read as one, so that its headings, lists and tables count.
import { marked } from "marked";
import type { BlockList } from "./blocks.ts";
import { readHtml } from "./html.ts";

export const readMarkdown = (text: string): BlockList =>
  readHtml(marked.parse(text, { async: false })).list;
