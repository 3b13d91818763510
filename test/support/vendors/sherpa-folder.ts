// A folder with a streaming transducer of a few hundred bytes that says "loud" for every loud
// chunk, so that the whole native path runs without any vendor's weights. Its protobuf is written
// by hand: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto has the numbers of the fields.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

type Field = [number: number, value: bigint | number | string | Buffer];

const FLOAT = 1;
const INT64 = 7;
const INTS = 7;
const INT = 2;

function varint(value: bigint | number): Buffer {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(left & 127n) | (left > 127n ? 128 : 0));
    left >>= 7n;
  } while (left > 0n);
  return Buffer.from(bytes);
}

function message(...fields: Field[]): Buffer {
  return Buffer.concat(fields.flatMap(([number, value]) => {
    if (typeof value === "number" || typeof value === "bigint") {
      return [varint(number << 3), varint(value)];
    }
    const bytes = typeof value === "string" ? Buffer.from(value) : value;
    return [varint((number << 3) | 2), varint(bytes.length), bytes];
  }));
}

const floats = (name: string, dims: number[], values: number[]): Buffer => message(
  ...dims.map((dim): Field => [1, dim]), [2, FLOAT], [8, name],
  [9, Buffer.from(Float32Array.from(values).buffer)]);

const value = (name: string, type: number, dims: (number | string)[]): Buffer => message(
  [1, name],
  [2, message([1, message(
    [1, type],
    [2, message(...dims.map((dim): Field =>
      [1, typeof dim === "number" ? message([1, dim]) : message([2, dim])]))],
  )])]);

const node = (type: string, inputs: string[], output: string, ...attributes: Buffer[]): Buffer =>
  message(
    ...inputs.map((input): Field => [1, input]), [2, output], [4, type],
    ...attributes.map((attribute): Field => [5, attribute]));

const mean = (input: string, output: string, axis: number): Buffer =>
  node("ReduceMean", [input], output, message([1, "axes"], [8, axis], [20, INTS]));

interface Graph {
  nodes: Buffer[];
  weights?: Buffer[];
  inputs: Buffer[];
  outputs: Buffer[];
  metadata: Record<string, string | number>;
}

function model({ nodes, weights = [], inputs, outputs, metadata }: Graph): Buffer {
  const graph = message(
    ...nodes.map((one): Field => [1, one]), [2, "graph"],
    ...weights.map((one): Field => [5, one]),
    ...inputs.map((one): Field => [11, one]),
    ...outputs.map((one): Field => [12, one]));
  return message(
    [1, 8], [7, graph], [8, message([1, ""], [2, 13])],
    ...Object.entries(metadata).map(([key, text]): Field =>
      [14, message([1, key], [2, String(text)])]));
}

/** The logarithm of the energy is above this for speech, and below for silence. */
const LOUD_FROM = -6;
const VOCABULARY = 4;
const [LAYERS, HIDDEN] = [1, 2];

export function writeLoudnessModel(folder: string): void {
  const state = (name: string): Buffer => value(name, FLOAT, [LAYERS, "N", HIDDEN]);
  writeFileSync(join(folder, "encoder-epoch-1.onnx"), model({
    nodes: [
      mean("x", "of_frame", 2), mean("of_frame", "of_chunk", 1),
      node("MatMul", ["of_chunk", "weights"], "scores"),
      node("Add", ["scores", "bias"], "encoder_out"),
      node("Identity", ["h"], "next_h"), node("Identity", ["c"], "next_c"),
    ],
    weights: [
      floats("weights", [1, VOCABULARY], [0, 0, 0, 1]),
      floats("bias", [VOCABULARY], [LOUD_FROM, -1e4, -1e4, 0]),
    ],
    inputs: [value("x", FLOAT, ["N", "T", 80]), state("h"), state("c")],
    outputs: [
      value("encoder_out", FLOAT, ["N", 1, VOCABULARY]), state("next_h"), state("next_c"),
    ],
    metadata: {
      model_type: "lstm", num_encoder_layers: LAYERS, T: 9, decode_chunk_len: 4,
      rnn_hidden_size: HIDDEN, d_model: HIDDEN,
    },
  }));
  writeFileSync(join(folder, "decoder-epoch-1.onnx"), model({
    nodes: [
      node("Cast", ["y"], "tokens", message([1, "to"], [3, FLOAT], [20, INT])),
      mean("tokens", "of_tokens", 1), node("MatMul", ["of_tokens", "nothing"], "decoder_out"),
    ],
    weights: [floats("nothing", [1, VOCABULARY], [0, 0, 0, 0])],
    inputs: [value("y", INT64, ["N", 2])],
    outputs: [value("decoder_out", FLOAT, ["N", VOCABULARY])],
    metadata: { vocab_size: VOCABULARY, context_size: 2 },
  }));
  writeFileSync(join(folder, "joiner-epoch-1.onnx"), model({
    nodes: [node("Add", ["encoder_out", "decoder_out"], "logit")],
    inputs: [
      value("encoder_out", FLOAT, ["N", VOCABULARY]), value("decoder_out", FLOAT, ["N", VOCABULARY]),
    ],
    outputs: [value("logit", FLOAT, ["N", VOCABULARY])],
    metadata: { joiner_dim: VOCABULARY },
  }));
  writeFileSync(join(folder, "tokens.txt"), "<blk> 0\n<sos/eos> 1\n<unk> 2\n▁LOUD 3\n");
}
