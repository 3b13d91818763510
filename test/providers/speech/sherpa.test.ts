// Recognition by sherpa-onnx with a model from a folder: a tiny one made here, through the native
// package as it is installed.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createLogger } from "#core/logger.ts";
import type { TranscriptEvent } from "#providers/speech/port.ts";
import { findSherpaModel } from "#config/sherpa-model.ts";
import { createSherpa, sherpaMissing } from "#providers/speech/embedded/sherpa.ts";
import { createReceived } from "#support/received.ts";
import { writeLoudnessModel } from "#support/vendors/sherpa-folder.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-sherpa-"));
after(() => rmSync(folder, { recursive: true }));

test("[SP80] a folder is searched for the files of a streaming model", () => {
  const make = (name: string, files: string[]): string => {
    const path = join(folder, name);
    mkdirSync(path);
    for (const file of files) writeFileSync(join(path, file), "");
    return path;
  };
  const zipformer = make("zipformer", [
    "tokens.txt", "encoder-99.onnx", "encoder-99.int8.onnx", "decoder-99.onnx", "joiner-99.onnx",
  ]);
  assert.deepEqual(findSherpaModel(zipformer), {
    tokens: join(zipformer, "tokens.txt"),
    transducer: {
      encoder: join(zipformer, "encoder-99.int8.onnx"),
      decoder: join(zipformer, "decoder-99.onnx"),
      joiner: join(zipformer, "joiner-99.onnx"),
    },
  });
  const paraformer = make("paraformer", ["tokens.txt", "encoder.onnx", "decoder.onnx"]);
  assert.deepEqual(Object.keys(findSherpaModel(paraformer)), ["tokens", "paraformer"]);
  const ctc = make("ctc", ["tokens.txt", "ctc-epoch-20.int8.onnx"]);
  assert.deepEqual(findSherpaModel(ctc), {
    tokens: join(ctc, "tokens.txt"), zipformer2Ctc: { model: join(ctc, "ctc-epoch-20.int8.onnx") },
  });
  assert.match(String(findSherpaModel(make("bare", ["model.onnx"]))), /no tokens\.txt/);
  const half = make("half", ["tokens.txt", "encoder.onnx"]);
  assert.match(String(findSherpaModel(half)), /no streaming model/);
});

const skip = sherpaMissing() ?? false;

test("[SP81] speech becomes partials, then a final text, separately for every call", { skip }, async () => {
  // The recogniser's thread alone keeps no process alive.
  const alive = setInterval(() => undefined, 1000);
  after(() => clearInterval(alive));
  writeLoudnessModel(folder);
  const model = findSherpaModel(folder);
  assert.ok(typeof model === "object");
  const recogniser = createSherpa({ model, languages: ["en"] }, createLogger("silent"));
  after(() => recogniser.close());
  const noise = (rate: number, seconds: number): Int16Array =>
    Int16Array.from({ length: rate * seconds }, (_, at) => 9000 * Math.sin(at * at));
  const received = createReceived<TranscriptEvent>();
  const other = createReceived<TranscriptEvent>();
  const stream = recogniser.open({ rate: 8000, language: "en", languages: [], hints: [] }, received.receive);
  const silent = recogniser.open({ rate: 16_000, language: "en", languages: [], hints: [] }, other.receive);
  stream.write(noise(8000, 1));
  silent.write(new Int16Array(16_000));
  const partial = await received.event("partial");
  assert.match(partial.text, /^loud/);
  stream.finalize();
  silent.finalize();
  const { text } = await received.event("final");
  assert.match(text, /^loud( loud)+$/);
  assert.equal((await other.event("final")).text, "");
  // The next piece begins anew.
  stream.write(new Int16Array(8000));
  stream.finalize();
  assert.equal((await received.event("final", 1)).text, "");
  stream.close();
  stream.write(noise(8000, 1));
  silent.finalize();
  await other.event("final", 1);
  assert.equal(received.kinds().filter((kind) => kind === "final").length, 2);
});
