// Word documents. What the archive declares is looked at before anything is unpacked; what it hides
// is the business of the process's memory limit.
import mammoth from "mammoth";
import { open as openZip, type ZipFile } from "yauzl";
import { Unreadable, type BlockList } from "./blocks.ts";
import { readHtml } from "./html.ts";

const ENTRIES_MAX = 2000;
const INFLATED_BYTES_MAX = 50 * 1024 * 1024;
const RATIO_MAX = 200;
const NOT_DOCX = "The file is not a valid DOCX document.";

function openArchive(path: string): Promise<ZipFile> {
  return new Promise((resolve, reject) => {
    openZip(path, { lazyEntries: true, autoClose: true }, (error, archive) => {
      if (error) reject(new Unreadable(NOT_DOCX, { cause: error }));
      else resolve(archive);
    });
  });
}

async function preflight(path: string): Promise<void> {
  const archive = await openArchive(path);
  let entries = 0;
  let inflated = 0;
  let hasDocument = false;
  await new Promise<void>((resolve, reject) => {
    const refuse = (reason: string): void => {
      archive.close();
      reject(new Unreadable(reason));
    };
    archive.on("entry", (entry: { fileName: string; uncompressedSize: number; compressedSize: number }) => {
      entries += 1;
      inflated += entry.uncompressedSize;
      hasDocument ||= entry.fileName === "word/document.xml";
      const isBomb = entry.uncompressedSize > 1024 * 1024
        && entry.uncompressedSize > RATIO_MAX * Math.max(1, entry.compressedSize);
      if (entries > ENTRIES_MAX || inflated > INFLATED_BYTES_MAX || isBomb) {
        return refuse("The document is too large to read once it is unpacked.");
      }
      archive.readEntry();
    });
    archive.on("end", resolve);
    archive.on("error", (error: Error) => reject(new Unreadable(NOT_DOCX, { cause: error })));
    archive.readEntry();
  });
  if (!hasDocument) throw new Unreadable(NOT_DOCX);
}

export async function readDocx(path: string): Promise<BlockList> {
  await preflight(path);
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
