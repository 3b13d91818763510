// Questions between nodes. What is asked has a subject of its own while somebody owns it (a reply
// being written, a live call), so it finds its owner without anybody looking up who that is, and
// nobody there is known at once.
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { decoderOf, encode } from "./message.ts";
import { WireFault, type Wire } from "./wire.ts";

/** What may be asked of one sort of thing; values are what JSON carries. */
type Family = Record<string, { body: object; answer: unknown }>;

interface QuestionsOptions<F extends Family> {
  /** The sort of thing; subjects are `<of>.<which>`. */
  of: string;
  /** Until an owner that does not answer is taken for one that does not reply. */
  waitMs: { [Kind in keyof F]: number };
  wire: Wire;
  log: Logger;
}

export interface Questions<F extends Family> {
  /** Rejects with a WireFault when nobody answers. */
  ask<Kind extends keyof F & string>(
    which: string, kind: Kind, body: F[Kind]["body"],
  ): Promise<F[Kind]["answer"]>;
  /** From now on it is this node's; the result ends that. */
  answer(
    which: string,
    give: { [Kind in keyof F]: (body: F[Kind]["body"]) => Promise<F[Kind]["answer"]> },
  ): () => void;
}

const decodeAsked = decoderOf(Type.Object({ kind: Type.String(), body: Type.Unknown() }));
const decodeAnswer = decoderOf(Type.Union([
  Type.Object({ is: Type.Literal("answer"), answer: Type.Unknown() }),
  /** A newer node asked an older one. */
  Type.Object({ is: Type.Literal("unknown") }),
  Type.Object({ is: Type.Literal("failed"), message: Type.String() }),
]));

export function createQuestions<F extends Family>(
  { of, waitMs, wire, log }: QuestionsOptions<F>,
): Questions<F> {
  return {
    ask: async (which, kind, body) => {
      const data = encode({ kind, body });
      const said = decodeAnswer(await wire.request(`${of}.${which}`, data, waitMs[kind]));
      if (said?.is === "answer") return said.answer;
      if (said?.is === "failed") throw new Error(`another node failed: ${said.message}`);
      throw new WireFault("nobody");
    },
    answer: (which, give) => {
      const reply = async (data: Uint8Array): Promise<Uint8Array> => {
        const asked = decodeAsked(data);
        if (!asked || !Object.hasOwn(give, asked.kind)) return encode({ is: "unknown" });
        try {
          const answer = await give[asked.kind]?.(asked.body as never);
          return encode({ is: "answer", answer });
        } catch (error) {
          log.error({ err: error, of, kind: asked.kind }, "another node could not be answered");
          return encode({ is: "failed", message: (error as Error).message });
        }
      };
      return wire.subscribe(`${of}.${which}`, (data, respond) => {
        // It never rejects.
        if (respond) void reply(data).then(respond);
      });
    },
  };
}

/** Null: nobody has it. Throws 503 where whoever `does`, as in "has the call", is not reached. */
export async function reaching<T>(does: string, asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof WireFault)) throw error;
    if (error.reason === "nobody") return null;
    throw new Fault(503, `The server that ${does} is out of reach.`, { retryAfterS: 1 });
  }
}
