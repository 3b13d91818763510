// A `test` conversation with an assistant: start, send, stop, retry. The client resumes a reply
// whose connection broke; a reloaded page resumes the reply it left.
import { useEffect, useMemo, useReducer } from "preact/hooks";
import { ParleyError, type Parley } from "#client/client.ts";
import { newKey } from "#ui/dashboard/data/new-key.ts";
import { fieldErrors, messageOf, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import {
  apply, linesOf, remember, remembered, said, withoutUnfinished, type Kept, type Line,
} from "./chat.ts";
import { t } from "#ui/dashboard/kit/texts.ts";
import { reworded } from "./labels.ts";

type Variables = Record<string, string>;

interface Tested {
  id: number;
  uuid: string;
}

/** A complaint about a draft is about one of its fields. */
export function problemOf(error: unknown): string {
  const [first] = Object.values(fieldErrors(error, reworded));
  return first ?? messageOf(error);
}

export class Chat {
  /** Unsaved settings, which apply from the next message on; null: the stored ones apply. */
  unsaved: object | null = null;
  lines: Line[] = [];
  isBusy = false;
  /** Why there is no answer. */
  problem: string | null = null;
  #kept: Kept;
  /** The turn whose reply is being written, as soon as the server has named it. */
  #turn: number | null = null;
  /** A new one for each conversation: late answers of the one before are dropped. */
  #abort = new AbortController();
  readonly #api: Parley;
  readonly #id: number;
  readonly #uuid: string;
  readonly #changed: () => void;

  constructor(api: Parley, { id, uuid }: Tested, changed: () => void) {
    this.#api = api;
    this.#id = id;
    this.#uuid = uuid;
    this.#changed = changed;
    this.#kept = remembered(uuid);
  }

  get conversation(): string | null {
    return this.#kept.conversation;
  }

  /** A message was sent and not answered: it can be stopped or, after a failure, sent again. */
  get isPending(): boolean {
    return this.#kept.pending !== null;
  }

  /** Continues what the page left when it was reloaded. */
  async resume(): Promise<void> {
    const { conversation, pending } = this.#kept;
    if (conversation === null) return;
    await this.#work(async (signal) => {
      await this.#load(conversation, signal);
      if (!pending || signal.aborted) return;
      const last = this.lines.at(-1);
      if (last?.role === "assistant" && this.lines.at(-2)?.text === pending.text) {
        return this.#keep({ conversation, pending: null });
      }
      // The server may not have it yet; the same key ensures that it is stored only once.
      if (last?.role !== "user") this.#draw([...this.lines, said(pending.text)]);
      await this.#deliver(conversation, pending, signal);
    });
  }

  async start(variables: Variables): Promise<void> {
    await this.#work(async (signal) => void await this.#begin(variables, signal));
  }

  /** False: there was no conversation to send it to. */
  async send(text: string, variables: Variables): Promise<boolean> {
    let isTaken = false;
    await this.#work(async (signal) => {
      const conversation = await this.#begin(variables, signal);
      if (signal.aborted) return;
      const pending = { key: newKey(), text };
      this.#keep({ conversation, pending });
      isTaken = true;
      this.#draw([...this.lines, said(text)]);
      await this.#deliver(conversation, pending, signal);
    });
    return isTaken;
  }

  async retry(): Promise<void> {
    const { conversation, pending } = this.#kept;
    if (conversation === null || !pending) return;
    await this.#work((signal) => this.#deliver(conversation, pending, signal));
  }

  async stop(): Promise<void> {
    if (this.conversation === null) return;
    const params = { path: { uuid: this.conversation } };
    // Names the turn, so that a reply that begins in the meantime is not stopped.
    const body = this.#turn === null ? {} : { turn_id: this.#turn };
    await unwrap(this.#api.POST("/conversations/{uuid}/stop", { params, body }));
  }

  /** Forgets the conversation; the next message starts a new one. */
  renew(): void {
    this.close();
    this.#abort = new AbortController();
    this.#keep({ conversation: null, pending: null });
    this.isBusy = false;
    this.problem = null;
    this.#draw([]);
  }

  close(): void {
    this.#abort.abort();
  }

  async #work(task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#abort;
    this.isBusy = true;
    this.problem = null;
    this.#changed();
    try {
      await task(signal);
    } catch (error) {
      if (signal.aborted) return;
      this.problem = problemOf(error);
      const isGone = error instanceof ParleyError && error.status === 404;
      if (isGone && this.lines.length === 0) this.#keep({ conversation: null, pending: null });
    }
    if (signal.aborted) return;
    this.isBusy = false;
    this.#changed();
  }

  async #begin(variables: Variables, signal: AbortSignal): Promise<string> {
    if (this.conversation !== null) return this.conversation;
    const { conversation_id: made } = await unwrap(this.unsaved
      ? this.#api.POST("/user/assistant/{id}/tests", {
          params: { path: { id: this.#id } }, signal,
          // Only the changes, though the body's type requires all settings.
          body: { settings: this.unsaved as never, variables },
        })
      : this.#api.POST("/conversations", {
          body: { assistant_id: this.#uuid, type: "test", variables }, signal,
        }));
    this.#keep({ conversation: made, pending: null });
    await this.#load(made, signal);
    return made;
  }

  async #load(conversation: string, signal: AbortSignal): Promise<void> {
    const params = { path: { uuid: conversation } };
    const { history } = await unwrap(
      this.#api.GET("/conversations/{uuid}", { params, signal }));
    if (!signal.aborted) this.#draw(linesOf(history));
  }

  async #deliver(
    conversation: string, pending: NonNullable<Kept["pending"]>, signal: AbortSignal,
  ): Promise<void> {
    this.#draw(withoutUnfinished(this.lines));
    this.#turn = null;
    const options = {
      idempotencyKey: pending.key, signal, ...this.unsaved ? { draft: this.unsaved } : {},
    };
    for await (const frame of this.#api.send(conversation, pending.text, options)) {
      if (signal.aborted) return;
      if (typeof frame.turn_id === "number") this.#turn = frame.turn_id;
      this.#draw(apply(this.lines, frame));
      if (frame.type === "reply_failed" && frame.reason !== "stopped") {
        this.problem = await this.#whyNot(conversation, signal) ?? String(frame.error);
        return;
      }
    }
    if (!signal.aborted) this.#keep({ conversation, pending: null });
  }

  /** Why the newest reply failed, in full: the stream only says which kind of failure it was. */
  async #whyNot(uuid: string, signal: AbortSignal): Promise<string | null> {
    const { data } = await this.#api
      .GET("/user/conversations/{uuid}/messages", { params: { path: { uuid } }, signal })
      .catch(() => ({ data: null }));
    const error = data?.failures[0]?.error;
    return error === undefined ? null : t("No reply: {text}", { text: error });
  }

  #keep(kept: Kept): void {
    this.#kept = kept;
    remember(this.#uuid, kept);
    this.#changed();
  }

  #draw(lines: Line[]): void {
    this.lines = lines;
    this.#changed();
  }
}

export function useChat({ id, uuid }: Tested, unsaved: object | null): Chat {
  const api = useApi();
  const [, changed] = useReducer((count: number) => count + 1, 0);
  const chat = useMemo(
    () => new Chat(api, { id, uuid }, () => changed(undefined)), [api, id, uuid]);
  chat.unsaved = unsaved;
  useEffect(() => {
    void chat.resume();
    return () => chat.close();
  }, [chat]);
  return chat;
}
