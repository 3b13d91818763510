// Word documents. The sizes an archive declares are checked before anything is unpacked; what it
// hides is left to the process's memory limit.
import mammoth from "mammoth";
import { openArchive } from "./archive.ts";
import { Unreadable, type BlockList } from "./blocks.ts";
import { readHtml } from "./html.ts";

const NOT_DOCX = "The file is not a valid DOCX document.";

export async function readDocx(path: string): Promise<BlockList> {
  (await openArchive(path, { invalid: NOT_DOCX, part: "word/document.xml" })).close();
  try {
    const { value } = await mammoth.convertToHtml({ path }, {
      externalFileAccess: false,
      convertImage: mammoth.images.imgElement(() => Promise.resolve({ src: "" })),
    });
    return readHtml(value).list;
  } catch (error) {
    if (error instanceof Unreadable) throw error;
    throw new Unreadable(NOT_DOCX, { cause: error });
  }
}
