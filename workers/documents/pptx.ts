// PowerPoint presentations: the slides that are shown, in their order, each with its title, texts,
// tables and the speaker's notes; a slide is a page.
import { openArchive, referenceIn, type Archive } from "./archive.ts";
import { BlockList } from "./blocks.ts";

const PRESENTATION = "ppt/presentation.xml";
const NOT_PPTX = "The file is not a valid PPTX presentation.";
const SLIDES_MAX = 500;
const SLIDE_CHARS_MAX = 200_000;
/** Placeholders with the same text on every slide. */
const FURNITURE = new Set(["sldNum", "dt", "ftr", "hdr", "sldImg"]);

interface Slide {
  isShown: boolean;
  title: string;
  lines: string[];
}

/** Collects a slide's paragraphs; the cells of a table's row become one line. */
function slideReader(slide: Slide) {
  let placeholder: string | null = null;
  let isText = false;
  let line = "";
  let row: string[] | null = null;
  let chars = 0;
  const add = (text: string): void => {
    const clean = text.trim();
    if (clean === "" || FURNITURE.has(placeholder ?? "")) return;
    chars += clean.length;
    const isTitle = placeholder === "title" || placeholder === "ctrTitle";
    if (isTitle) slide.title = slide.title === "" ? clean : `${slide.title} ${clean}`;
    else slide.lines.push(clean);
  };
  return {
    open: (name: string, { type, show }: Record<string, string>): void => {
      if (name === "sld") slide.isShown = show !== "0" && show !== "false";
      else if (name === "sp") placeholder = null;
      else if (name === "ph") placeholder = type ?? "body";
      else if (name === "tr") row = [];
      else if (name === "tc") row?.push("");
      else if (name === "br") line += "\n";
      isText = name === "t";
    },
    text: (part: string): void => {
      if (isText) line += part;
    },
    close: (name: string): void => {
      isText = false;
      if (name === "p") {
        if (row) row.push([row.pop() ?? "", line].filter((text) => text !== "").join(" "));
        else add(line);
        line = "";
      } else if (name === "tr" && row) {
        add(row.filter((cell) => cell.trim() !== "").join(" | "));
        row = null;
      } else if (name === "sp") placeholder = null;
    },
    isDone: () => chars > SLIDE_CHARS_MAX,
  };
}

async function slidesOf(archive: Archive): Promise<string[]> {
  const relations = await archive.relations(PRESENTATION);
  const parts: string[] = [];
  await archive.parse(PRESENTATION, {
    open: (name, attributes) => {
      const part = name === "sldId" ? relations.get(referenceIn(attributes) ?? "")?.target : null;
      if (part && parts.length < SLIDES_MAX) parts.push(part);
    },
  });
  return parts;
}

async function read(archive: Archive, part: string): Promise<Slide> {
  const slide: Slide = { isShown: true, title: "", lines: [] };
  await archive.parse(part, slideReader(slide));
  return slide;
}

async function notesOf(archive: Archive, part: string): Promise<string[]> {
  const relations = await archive.relations(part);
  const notes = [...relations.values()].find(({ type }) => type === "notesSlide");
  return notes ? (await read(archive, notes.target)).lines : [];
}

export async function readPptx(path: string): Promise<{ list: BlockList; pages: number }> {
  const archive = await openArchive(path, { invalid: NOT_PPTX, part: PRESENTATION });
  try {
    const list = new BlockList();
    let pages = 0;
    for (const [index, part] of (await slidesOf(archive)).entries()) {
      if (list.truncated) break;
      const { isShown, title, lines } = await read(archive, part);
      if (!isShown) continue;
      pages += 1;
      const page = index + 1;
      list.forgetHeadings();
      list.heading(1, title, { page });
      list.text(lines.join("\n"), { page });
      list.text((await notesOf(archive, part)).join("\n"), { page });
    }
    return { list, pages };
  } finally {
    archive.close();
  }
}
