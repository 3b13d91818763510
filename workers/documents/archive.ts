// Documents that are archives of XML: Word, Excel, PowerPoint. The sizes an archive declares are
// checked before anything is unpacked, and no entry may become larger than declared. Used by
// docx.ts, xlsx.ts and pptx.ts.
import { StringDecoder } from "node:string_decoder";
import type { Readable } from "node:stream";
import { posix } from "node:path";
import { Parser } from "htmlparser2";
import { open as openZip, type Entry, type ZipFile } from "yauzl";
import { Unreadable } from "./blocks.ts";

const ENTRIES_MAX = 2000;
const INFLATED_BYTES_MAX = 50 * 1024 * 1024;
const RATIO_MAX = 200;
/** Smaller entries may have any compression ratio. */
const RATIO_FREE_BYTES = 1024 * 1024;
const DEPTH_MAX = 200;
const TOO_LARGE = "The document is too large to read once it is unpacked.";

/** Names come without their namespace prefix, which every program chooses for itself. */
interface XmlReader {
  open?(name: string, attributes: Record<string, string>): void;
  text?(text: string): void;
  close?(name: string): void;
  /** True: the rest is not needed. */
  isDone?(): boolean;
}

export interface Archive {
  has(name: string): boolean;
  /** Reads one part; nothing happens where the archive does not have it. */
  parse(name: string, reader: XmlReader): Promise<void>;
  /** Parts the named part refers to, by the id of the reference. */
  relations(name: string): Promise<Map<string, { target: string; type: string }>>;
  close(): void;
}

const localName = (name: string): string => name.slice(name.lastIndexOf(":") + 1);

function opened(path: string, invalid: string): Promise<ZipFile> {
  return new Promise((resolve, reject) => {
    openZip(path, { lazyEntries: true, autoClose: false }, (error, zip) => {
      if (error) reject(new Unreadable(invalid, { cause: error }));
      else resolve(zip);
    });
  });
}

function entriesOf(zip: ZipFile, invalid: string): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  let seen = 0;
  let inflated = 0;
  return new Promise((resolve, reject) => {
    zip.on("entry", (entry: Entry) => {
      seen += 1;
      inflated += entry.uncompressedSize;
      const isBomb = entry.uncompressedSize > RATIO_FREE_BYTES
        && entry.uncompressedSize > RATIO_MAX * Math.max(1, entry.compressedSize);
      if (seen > ENTRIES_MAX || inflated > INFLATED_BYTES_MAX || isBomb) {
        return reject(new Unreadable(TOO_LARGE));
      }
      entries.set(entry.fileName, entry);
      zip.readEntry();
    });
    zip.on("end", () => resolve(entries));
    zip.on("error", (error: Error) => reject(new Unreadable(invalid, { cause: error })));
    zip.readEntry();
  });
}

const streamOf = (zip: ZipFile, entry: Entry): Promise<Readable> =>
  new Promise((resolve, reject) => {
    zip.openReadStream(entry, (error, stream) => (error ? reject(error) : resolve(stream)));
  });

async function parseStream(stream: Readable, reader: XmlReader): Promise<void> {
  let depth = 0;
  const parser = new Parser({
    onopentag: (name, attributes) => {
      depth += 1;
      if (depth > DEPTH_MAX) throw new Unreadable("The document is nested too deeply to read.");
      reader.open?.(localName(name), attributes);
    },
    ontext: (text) => reader.text?.(text),
    onclosetag: (name) => {
      depth -= 1;
      reader.close?.(localName(name));
    },
  }, { xmlMode: true, decodeEntities: true });
  const decoder = new StringDecoder("utf8");
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    parser.write(decoder.write(chunk));
    // Leaving the loop destroys the stream.
    if (reader.isDone?.()) return;
  }
  parser.end();
}

/** Throws Unreadable, with the text `invalid` if it is no archive or lacks the required part. */
export async function openArchive(
  path: string, { invalid, part }: { invalid: string; part: string },
): Promise<Archive> {
  const zip = await opened(path, invalid);
  const parse: Archive["parse"] = async (name, reader) => {
    const entry = entries.get(name);
    if (!entry) return;
    try {
      await parseStream(await streamOf(zip, entry), reader);
    } catch (error) {
      if (error instanceof Unreadable) throw error;
      throw new Unreadable(invalid, { cause: error });
    }
  };
  let entries: Map<string, Entry>;
  try {
    entries = await entriesOf(zip, invalid);
    if (!entries.has(part)) throw new Unreadable(invalid);
  } catch (error) {
    zip.close();
    throw error;
  }
  return {
    has: (name) => entries.has(name),
    parse,
    relations: async (name) => {
      const { dir, base } = posix.parse(name);
      const found = new Map<string, { target: string; type: string }>();
      await parse(`${dir}/_rels/${base}.rels`, {
        open: (tag, { Id: id, Target: target, Type: type = "" }) => {
          if (tag !== "Relationship" || !id || !target) return;
          found.set(id, {
            target: target.startsWith("/") ? target.slice(1) : posix.join(dir, target),
            type: type.slice(type.lastIndexOf("/") + 1),
          });
        },
      });
      return found;
    },
    close: () => zip.close(),
  };
}

/** The id that an element refers to, whatever prefix its namespace has in the file. */
export const referenceIn = (attributes: Record<string, string>): string | undefined =>
  Object.entries(attributes).find(([name]) => name.includes(":") && localName(name) === "id")?.[1];
