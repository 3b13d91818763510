// The API of the server the widget was loaded from, as far as the widget needs it.

import type { Field, Visitor } from "./options.ts";

export interface Settings {
  name: string;
  widget_settings: {
    theme?: string;
    color?: string;
    position?: string;
    /** How long the browser keeps a conversation; 0: as long as the tab. */
    remember_days?: number;
    form?: { title?: string; text?: string; fields: Field[] };
    greeting?: { text: string; after_seconds?: number; pages?: string[]; again_days?: number };
    /** False: the page shows nothing. */
    enabled?: boolean;
    /** False: replies have no thumbs. */
    ratings?: boolean;
    /** False: visitors are not asked how the chat was. */
    satisfaction?: boolean;
    attachments?: boolean;
    /** The assistant's picture, as a data URL. */
    avatar?: string;
  };
  initial_message: string;
  calls: boolean;
  /** False: the server recognises no speech; a call needs the browser's own recognition. */
  hears: boolean;
  language: string;
  /** The widget's words, and the language they are in. */
  texts: Record<string, string>;
  texts_language: string;
  /** Visitors can ask for a person. */
  person: boolean;
  /** The chat can be sent by e-mail. */
  transcripts: boolean;
  /** The state when the page was loaded; null: people are there. */
  away: Away | null;
}

/** Who handles a conversation; `person` is the name if a person does. */
export interface Desk {
  desk: "assistant" | "waiting" | "person";
  person: string | null;
}

/** What the team tells a visitor who asks for a person outside office hours. */
export interface Away {
  message: string;
  /** Null: it is not known when somebody will be there. */
  opens_at: string | null;
  /** The visitor may ask for a callback. */
  callback: boolean;
}

/** How a visitor wants to be reached; by telephone, mail or both. */
export interface Wish {
  name: string;
  phone: string;
  email: string;
  wish: string;
}

export type Rating = "up" | "down";

export interface Attachment {
  id: string;
  name: string;
  type: string;
}

export interface Message {
  role: "user" | "assistant" | "operator";
  content: string;
  author?: { name: string };
  attachments?: Attachment[];
  stopped?: boolean;
  rating?: Rating;
}

/** All that was said, and where in the stream that ends. */
export interface History {
  messages: Message[];
  /** The turn that wrote each message; null: it is no reply. */
  turns: (number | null)[];
  position: string;
  hasEnded: boolean;
  desk: Desk;
}

/** The server refused. Its error text is for the account's owner; visitors never see it. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number) {
    super();
    this.status = status;
  }
}

export interface Pending {
  key: string;
  text: string;
  files?: string[];
}

export interface Api {
  origin: string;
  /** Texts are in the tag's language, else in that of the settings, the page or the browser. */
  settings(of: { assistant: string; language?: string }): Promise<Settings>;
  /** `anew`: makes a new one even if the visitor has one. */
  create(of: {
    assistant: string; variables: Record<string, string>; visitor?: Visitor | undefined;
    anew: boolean;
  }): Promise<string>;
  /**
   * `answering`: watch the stream. `over`: nobody answers, or has answered before. Rejects when
   * refused, or if the reply to a message sent again has failed.
   */
  send(conversation: string, pending: Pending): Promise<"answering" | "over">;
  attach(conversation: string, file: File): Promise<Attachment>;
  fileOf(conversation: string, id: string): string;
  /** The place in line, and the picture of the person who answers. */
  deskOf(conversation: string): Promise<{ place: number | null; face: string | null }>;
  transcript(conversation: string, email: string): Promise<void>;
  callback(conversation: string, wish: Wish): Promise<void>;
  stop(conversation: string, turn: number | null): Promise<void>;
  askForPerson(conversation: string): Promise<void>;
  rate(conversation: string, turn: number, rating: Rating | null): Promise<void>;
  score(conversation: string, score: number, comment: string): Promise<void>;
  typing(conversation: string): void;
  history(conversation: string): Promise<History>;
  streamOf(conversation: string): string;
}

const PAGE_CHARS_MAX = 500;

/** False: a proxy answered whose server is down, which says nothing about the resource. */
export const isOwn = ({ headers }: Response): boolean =>
  headers.get("content-type")?.startsWith("application/json") === true;

/** Throws Refusal, or another error when the server was not reached. */
async function ask(url: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, { credentials: "omit", cache: "no-store", ...init });
  if (response.ok) return response;
  if (!isOwn(response)) throw new Error("not reached");
  throw new Refusal(response.status);
}

const post = (body: object, headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  headers: { "Content-Type": "application/json", Accept: "application/json", ...headers },
  body: JSON.stringify(body),
});

async function send(
  url: string, { text: message, key, files: attachments }: Pending,
): Promise<"answering" | "over"> {
  const body = attachments ? { message, attachments } : { message };
  const once = (accepts: Record<string, string>): Promise<Response> =>
    ask(url, post(body, { "Idempotency-Key": key, ...accepts }));
  const { headers, body: rest } = await once({ Accept: "text/event-stream" });
  // The response's head confirms that the message is stored; the watched stream has the reply.
  await rest?.cancel();
  if (!headers.get("content-type")?.startsWith("text/event-stream")) return "over";
  if (!headers.has("Idempotency-Replayed")) return "answering";
  // The reply may have ended in a part of the log that the stream will not bring any more.
  await once({});
  return "over";
}

export function createApi(origin: string): Api {
  const api = `${origin}/api`;
  const root = `${api}/conversations`;
  return {
    origin,
    settings: async ({ assistant, language }) => {
      const page = document.documentElement.lang || navigator.language;
      const query = new URLSearchParams({ page, ...(language ? { language } : {}) });
      const url = `${api}/widget/${encodeURIComponent(assistant)}?${query.toString()}`;
      return (await (await ask(url)).json()) as Settings;
    },
    create: async ({ assistant, variables, visitor, anew }) => {
      const who = visitor ? { visitor, anew } : {};
      // Query and fragment are left out: they may be private.
      const page = (location.origin + location.pathname).slice(0, PAGE_CHARS_MAX);
      const response = await ask(root, post({ assistant_id: assistant, variables, page, ...who }));
      return ((await response.json()) as { conversation_id: string }).conversation_id;
    },
    send: (conversation, pending) => send(`${root}/${conversation}/messages`, pending),
    attach: async (conversation, file) => {
      const body = new FormData();
      body.set("file", file);
      const response = await ask(`${root}/${conversation}/attachments`, { method: "POST", body });
      return ((await response.json()) as { attachment: Attachment }).attachment;
    },
    fileOf: (conversation, id) => `${root}/${conversation}/attachments/${id}`,
    deskOf: async (conversation) => {
      const { place, holder } = await (await ask(`${root}/${conversation}/desk`)).json() as {
        place: number | null; holder: { avatar: string | null } | null;
      };
      return { place, face: holder?.avatar ?? null };
    },
    transcript: async (conversation, email) => {
      await ask(`${root}/${conversation}/transcript`, post({ email }));
    },
    callback: async (conversation, wish) => {
      await ask(`${root}/${conversation}/callback`, post(wish));
    },
    stop: async (conversation, turn) => {
      await ask(`${root}/${conversation}/stop`, post(turn === null ? {} : { turn_id: turn }));
    },
    askForPerson: async (conversation) => {
      await ask(`${root}/${conversation}/request-human`, post({}));
    },
    rate: async (conversation, turn, rating) => {
      await ask(`${root}/${conversation}/ratings`, post({ turn_id: turn, rating }));
    },
    score: async (conversation, score, comment) => {
      await ask(`${root}/${conversation}/satisfaction`, post({ score, comment }));
    },
    // A typing notice that does not arrive does no harm.
    typing: (conversation) =>
      void ask(`${root}/${conversation}/typing`, post({ typing: true })).catch(() => undefined),
    history: async (conversation) => {
      const { history, turn_ids: turns, position, ended, desk, desk_holder: holder } =
        await (await ask(`${root}/${conversation}`)).json() as {
          history: Message[]; turn_ids: History["turns"]; position: string; ended: boolean;
          desk: Desk["desk"]; desk_holder: { name: string } | null;
        };
      return {
        messages: history, turns, position, hasEnded: ended,
        desk: { desk, person: holder?.name ?? null },
      };
    },
    streamOf: (conversation) => `${root}/${conversation}/stream`,
  };
}
