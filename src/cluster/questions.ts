// Questions between nodes. Each thing that a node owns (a reply being written, a live call) has a
// subject of its own, so that a question reaches the owner without a lookup, and the lack of an
// owner is known at once.
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { decoderOf, encode } from "./message.ts";
import { WireFault, type Wire } from "./wire.ts";

/** What may be asked about one sort of thing; values must survive JSON. */
type Family = Record<string, { body: object; answer: unknown }>;

interface QuestionsOptions<F extends Family> {
  /** The sort of thing; subjects are `<of>.<which>`. */
  of: string;
  /** How long an answer is waited for until the question fails as `late`. */
  waitMs: { [Kind in keyof F]: number };
  wire: Wire;
  log: Logger;
}

export interface Questions<F extends Family> {
  /** Rejects with a WireFault when nobody answers. */
  ask<Kind extends keyof F & string>(
    which: string, kind: Kind, body: F[Kind]["body"],
  ): Promise<F[Kind]["answer"]>;
  /** This node owns the thing from now on, until the result is called. */
  answer(
    which: string,
    give: { [Kind in keyof F]: (body: F[Kind]["body"]) => Promise<F[Kind]["answer"]> },
  ): () => void;
}

const decodeAsked = decoderOf(Type.Object({ kind: Type.String(), body: Type.Unknown() }));
const decodeAnswer = decoderOf(Type.Union([
  Type.Object({ is: Type.Literal("answer"), answer: Type.Unknown() }),
  /** The answer of an older node to a newer one's question. */
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
          log.error({ err: error, of, kind: asked.kind }, "could not answer another node");
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

/** Null: no node has it. Throws Fault 503, worded with `does` ("has the call"), if out of reach. */
export async function reaching<T>(does: string, asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof WireFault)) throw error;
    if (error.reason === "nobody") return null;
    throw new Fault(503, `The server that ${does} is out of reach.`, { retryAfterS: 1 });
  }
}
