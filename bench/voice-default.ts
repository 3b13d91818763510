// Calls with a server's built-in engines: Silero, PocketSphinx, Flite. A caller with Flite's
// clearest voice asks one question after the other over the telephone's 8 kHz, and the model
// answers at once. Started by bench/voice.ts.
import { setTimeout as delay } from "node:timers/promises";
import { median, percentile, print } from "./report.ts";
import { startCallServer, type Turn } from "./voice-server.ts";

/** Phrased as callers do; a third of them are statements. */
export const QUESTIONS = [
  "What time do you open on Saturday?", "Can you tell me the price of a city bike?",
  "I would like to change my address.", "Do you have any tables for tonight?",
  "How far is it from the station?", "I have not received my invoice.",
  "Is there a parking garage near your shop?", "When will the order be delivered?",
  "We are coming by train tomorrow.", "Thank you very much.",
];
/** Calls at a time; the recogniser follows six. */
const AT_ONCE = [1, 3];
const CALL_MS = 150_000;
/** V8 releases the memory of calls only after 8 idle seconds. */
const SETTLE_MS = 12_000;
const SAMPLE_MS = 250;
const STAGES = [
  "final_transcript_ms", "endpoint_ms", "first_token_ms", "first_audio_ms", "heard_ms",
] as const;

interface DefaultStep {
  calls: number;
  turns: number;
  /** Questions to which no answer was heard. */
  unheard: number;
  heard_p50_ms: number;
  heard_p95_ms: number;
  /** The medians of the stages of a turn. */
  stages: Record<string, number>;
  mib_per_call: number;
}

interface DefaultSpeech {
  steps: DefaultStep[];
  mib_before: number;
  /** Memory held once the last call is over. */
  mib_after: number;
}

export async function measureDefaultSpeech(
  env: Record<string, string>, keys: string[], assistant: object,
): Promise<DefaultSpeech> {
  const server = await startCallServer({ ...env, PARLEY_SPEECH: "auto" }, keys, assistant);
  const until = async (deadline: number): Promise<number> => {
    let mostMib = 0;
    const sampling = setInterval(() => {
      mostMib = Math.max(mostMib, server.residentMib());
    }, SAMPLE_MS);
    if (!await server.areOver(deadline)) throw new Error("calls with default speech do not end");
    clearInterval(sampling);
    return mostMib;
  };
  // Engines are loaded with the first call.
  await server.receive(QUESTIONS.slice(0, 1));
  await until(performance.now() + CALL_MS);
  await server.turns();
  await delay(SETTLE_MS);
  const before = server.residentMib();
  const steps: DefaultStep[] = [];
  for (const calls of AT_ONCE) {
    await Promise.all(Array.from({ length: calls }, () => server.receive(QUESTIONS)));
    const mostMib = await until(performance.now() + CALL_MS);
    const step = stepOf(calls, await server.turns(), (mostMib - before) / calls);
    steps.push(step);
    print(`default speech, ${JSON.stringify(step)}`);
  }
  await delay(SETTLE_MS);
  const after = server.residentMib();
  await server.stop();
  return { steps, mib_before: Math.round(before), mib_after: Math.round(after) };
}

function stepOf(calls: number, turns: Turn[], mib: number): DefaultStep {
  const of = (stage: keyof Turn): number[] => turns.flatMap((turn) => turn[stage] ?? []);
  const heard = of("heard_ms");
  return {
    calls, turns: turns.length, unheard: calls * QUESTIONS.length - heard.length,
    heard_p50_ms: median(heard), heard_p95_ms: percentile(heard, 95),
    stages: Object.fromEntries(STAGES.map((stage) => [stage, median(of(stage))])),
    mib_per_call: Number(Math.max(0, mib).toFixed(1)),
  };
}
