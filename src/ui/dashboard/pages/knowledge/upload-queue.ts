// Uploads into a knowledgebase, one after the other; each succeeds or fails by itself. They go on
// while people are on other pages, so the queue lives outside of any page.
import { useEffect, useReducer } from "preact/hooks";
import { ParleyError } from "#client/client.ts";
import { messageOf } from "#ui/dashboard/data/session.tsx";
import { FILE_BYTES_MAX, upload } from "#ui/dashboard/data/upload.ts";

export interface Item {
  id: number;
  file: File;
  /** `refused`: never sent. */
  state: "waiting" | "sending" | "failed" | "refused";
  /** From 0 to 1. */
  share: number;
  problem: string | null;
}

const TYPES: Record<string, "pdf" | "txt" | "docx" | "md" | "html" | "csv" | "xlsx" | "pptx"> = {
  pdf: "pdf", txt: "txt", docx: "docx", md: "md", markdown: "md", html: "html", htm: "html",
  csv: "csv", xlsx: "xlsx", pptx: "pptx",
};
export const ACCEPTED = Object.keys(TYPES).map((ending) => `.${ending}`).join(",");
const NAME_CHARS_MAX = 255;

const typeOf = ({ name }: File) => TYPES[name.split(".").at(-1)?.toLowerCase() ?? ""];

/** Why the server would not take it; null: it may. */
function problemOf(file: File): string | null {
  if (!typeOf(file)) return "Only PDF, DOCX, XLSX, PPTX, TXT, Markdown, HTML and CSV files can be read.";
  if (file.size === 0) return "The file is empty.";
  return file.size > FILE_BYTES_MAX ? "The file is larger than 20 MB." : null;
}

class UploadQueue {
  items: readonly Item[] = [];
  readonly #path: string;
  readonly #listeners = new Set<(isDone: boolean) => void>();
  readonly #aborts = new Map<number, AbortController>();
  #newest = 0;
  #isRunning = false;

  constructor(knowledgebaseId: number) {
    this.#path = `/user/knowledgebases/${knowledgebaseId}/documents`;
  }

  /** Calls `listener` on every change; `isDone`: a file has been uploaded. */
  listen(listener: (isDone: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get isBusy(): boolean {
    return this.items.some(({ state }) => state === "waiting" || state === "sending");
  }

  add(files: File[], apiKey: string | null): void {
    const added = files.map((file): Item => {
      const problem = problemOf(file);
      this.#newest += 1;
      return { id: this.#newest, file, state: problem ? "refused" : "waiting", share: 0, problem };
    });
    this.items = [...this.items, ...added];
    this.#notify();
    void this.#run(apiKey);
  }

  again(id: number, apiKey: string | null): void {
    this.#change(id, { state: "waiting", share: 0, problem: null });
    void this.#run(apiKey);
  }

  /** Aborts the upload if it is in progress. */
  remove(id: number): void {
    this.#aborts.get(id)?.abort();
    this.items = this.items.filter((item) => item.id !== id);
    this.#notify();
  }

  #notify(isDone = false): void {
    for (const listener of [...this.#listeners]) listener(isDone);
  }

  #change(id: number, changes: Partial<Item>): void {
    this.items = this.items.map((item) => item.id === id ? { ...item, ...changes } : item);
    this.#notify();
  }

  async #run(apiKey: string | null): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (let next = this.#next(); next; next = this.#next()) await this.#send(next, apiKey);
    this.#isRunning = false;
  }

  #next(): Item | undefined {
    return this.items.find(({ state }) => state === "waiting");
  }

  async #send({ id, file }: Item, apiKey: string | null): Promise<void> {
    const abort = new AbortController();
    this.#aborts.set(id, abort);
    this.#change(id, { state: "sending" });
    try {
      await upload({
        path: this.#path, apiKey, file, signal: abort.signal,
        fields: { name: file.name.slice(-NAME_CHARS_MAX), type: typeOf(file) ?? "txt" },
        onProgress: (share) => this.#change(id, { share }),
      });
      this.items = this.items.filter((item) => item.id !== id);
      this.#notify(true);
    } catch (error) {
      if (error instanceof ParleyError && error.status === 429) await this.#wait(id, error);
      else this.#change(id, { state: "failed", problem: messageOf(error) });
    } finally {
      this.#aborts.delete(id);
    }
  }

  /** The rate limit was reached: nothing was stored, and the upload is retried automatically. */
  async #wait(id: number, { body }: ParleyError): Promise<void> {
    const seconds = Number((body as { retry_after?: unknown } | null)?.retry_after) || 10;
    this.#change(id, { state: "waiting", share: 0 });
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}

const queues = new Map<number, UploadQueue>();

export function useUploads(knowledgebaseId: number, onDone: () => void): UploadQueue {
  const [, changed] = useReducer((version: number) => version + 1, 0);
  let queue = queues.get(knowledgebaseId);
  if (!queue) queues.set(knowledgebaseId, queue = new UploadQueue(knowledgebaseId));
  const { isBusy } = queue;
  useEffect(() => queue.listen((isDone) => {
    changed(undefined);
    if (isDone) onDone();
  }), [queue, onDone]);
  useEffect(() => {
    if (!isBusy) return;
    const onUnload = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", onUnload);
    return () => removeEventListener("beforeunload", onUnload);
  }, [isBusy]);
  return queue;
}
