// Sends a file and its fields, and reports the progress, which `fetch` cannot.
import { ParleyError } from "#client/client.ts";
import { keyOf, noteAnswer } from "./lost-answers.ts";

/** The server's limit; larger files are refused before anything is sent. */
export const FILE_BYTES_MAX = 20 * 1024 * 1024;

interface Upload {
  /** Below `/api`. */
  path: string;
  /** Null: the cookie authenticates. */
  apiKey: string | null;
  fields: Record<string, string>;
  file: File;
  /** From 0 to 1; at 1 the server has it all and is about to answer. */
  onProgress(share: number): void;
  signal?: AbortSignal;
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/** The body of the answer; throws ParleyError, TypeError without an answer, AbortError. */
export function upload<T>({ path, apiKey, fields, file, onProgress, signal }: Upload): Promise<T> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("file", file);
  const request = new XMLHttpRequest();
  const asked = JSON.stringify([path, fields, file.name, file.size, file.lastModified]);
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => request.abort();
    signal?.addEventListener("abort", abort);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
    request.onload = () => {
      const body = parsed(request.responseText);
      noteAnswer(asked, request.status, request.getResponseHeader("retry-after"));
      if (request.status >= 200 && request.status < 300) resolve(body as T);
      else reject(new ParleyError(request.status, body));
    };
    request.onerror = () => reject(new TypeError("no answer"));
    request.onabort = () => reject(new DOMException("aborted", "AbortError"));
    request.onloadend = () => signal?.removeEventListener("abort", abort);
    request.open("POST", `${location.origin}/api${path}`);
    if (apiKey !== null) request.setRequestHeader("Authorization", `Bearer ${apiKey}`);
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("idempotency-key", keyOf(asked));
    if (signal?.aborted) reject(new DOMException("aborted", "AbortError"));
    else request.send(form);
  });
}
