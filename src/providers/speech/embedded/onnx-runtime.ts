// Runs small networks in this process with the ONNX Runtime that sherpa-onnx-node ships: that
// package's own interface makes a session, some ten MiB and 80 ms, for every speaker, and shares
// none. Used by silero.ts; calls go through koffi, which needs no compiler. Unavailable without the
// optional package.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import koffi from "koffi";

type Pointer = bigint;
type Call = (...args: unknown[]) => unknown;

/** Indexes into the function table `OrtApi`; an index never changes, new ones are appended. */
const PLACES = {
  getErrorMessage: 2, createEnv: 3, createSession: 7, run: 9, createSessionOptions: 10,
  setIntraOpNumThreads: 24, setInterOpNumThreads: 25, createTensorWithData: 49, createCpuMemory: 69,
  releaseStatus: 93,
} as const;
/** The oldest version of the table that has all of them. */
const API_VERSION = 17;
const ERRORS_ONLY = 3;
const POINTER_BYTES = 8;

const LIBRARIES: Partial<Record<NodeJS.Platform, string>> = {
  linux: "libonnxruntime.so", darwin: "libonnxruntime.dylib", win32: "onnxruntime.dll",
};
const ELEMENTS = { float: { code: 1, bytes: 4 }, int64: { code: 7, bytes: 8 } } as const;

/** Memory that the network reads or writes; never freed while the process lives. */
interface Memory {
  address: Pointer;
  buffer: ArrayBuffer;
}

/** A run with fixed inputs and outputs, prepared once and called as often as wanted. */
export interface Run {
  (): void;
}

export interface Network {
  memory(kind: keyof typeof ELEMENTS, count: number): Memory;
  /** Inputs and outputs by name, each at the beginning of its memory. */
  prepare(inputs: Record<string, Tensor>, outputs: Record<string, Tensor>): Run;
}

interface Tensor {
  kind: keyof typeof ELEMENTS;
  memory: Memory;
  shape: readonly number[];
}

/** Null: there is no runtime for this machine. Throws where the file is no network. */
export function openNetwork(modelFile: string): Network | null {
  const library = findLibrary();
  return library === null ? null : openWith(library, modelFile);
}

function findLibrary(): string | null {
  const file = LIBRARIES[process.platform];
  const system = process.platform === "win32" ? "win" : process.platform;
  try {
    const own = createRequire(import.meta.url);
    // Resolved from sherpa-onnx-node, on whose behalf the platform's package is installed.
    const sherpa = createRequire(own.resolve("sherpa-onnx-node"));
    const folder = dirname(sherpa.resolve(`sherpa-onnx-${system}-${process.arch}/package.json`));
    return file === undefined ? null : join(folder, file);
  } catch {
    return null;
  }
}

function openWith(library: string, modelFile: string): Network {
  const api = readApi(library);
  const made = (place: keyof typeof PLACES, types: string[], ...args: unknown[]): Pointer => {
    const result: [Pointer] = [0n];
    api.checked(place, [...types, OUT_POINTER])(...args, result);
    return result[0];
  };
  const env = made("createEnv", ["int", "const char *"], ERRORS_ONLY, "parley");
  const options = made("createSessionOptions", []);
  // Work this small is slower in several threads.
  api.checked("setIntraOpNumThreads", [POINTER, "int"])(options, 1);
  api.checked("setInterOpNumThreads", [POINTER, "int"])(options, 1);
  const path = process.platform === "win32" ? "const char16_t *" : "const char *";
  const session = made("createSession", [POINTER, path, POINTER], env, modelFile, options);
  const cpu = made("createCpuMemory", ["int", "int"], 0, 0);
  const tensorOf = ({ kind, memory, shape }: Tensor): Pointer => {
    const { code, bytes } = ELEMENTS[kind];
    const size = shape.reduce((product, side) => product * side, bytes);
    if (size > memory.buffer.byteLength) throw new Error("a tensor is longer than its memory");
    return made("createTensorWithData",
      [POINTER, POINTER, "size_t", "int64_t *", "size_t", "int"],
      cpu, memory.address, size, BigInt64Array.from(shape, BigInt), shape.length, code);
  };
  const run = api.checked("run", [
    POINTER, POINTER, POINTER, POINTER, "size_t", POINTER, "size_t", POINTER,
  ]);
  return {
    memory: (kind, count) => allocate(count * ELEMENTS[kind].bytes),
    prepare: (inputs, outputs) => {
      const args = [
        session, null,
        pointers(Object.keys(inputs).map(textAddress)),
        pointers(Object.values(inputs).map(tensorOf)), Object.keys(inputs).length,
        pointers(Object.keys(outputs).map(textAddress)), Object.keys(outputs).length,
        pointers(Object.values(outputs).map(tensorOf)),
      ];
      return () => void run(...args);
    },
  };
}

const POINTER = "void *";
const OUT_POINTER = "_Out_ void **";

/** Keeps the handles: a collected one unloads its library while it is called by address. */
const loaded: unknown[] = [];

function readApi(file: string): { checked(place: keyof typeof PLACES, types: string[]): Call } {
  const handle = koffi.load(file);
  loaded.push(handle);
  const base = handle.func("OrtGetApiBase", POINTER, [])() as Pointer;
  const call = (address: unknown, result: string, types: string[]): Call => {
    const type = koffi.proto(result, types.map(typeOf));
    return (...args) => koffi.call(address, type, ...args) as unknown;
  };
  const table = call(koffi.decode(base, POINTER), POINTER, ["uint32_t"])(API_VERSION) as Pointer;
  if (!table) throw new Error("the ONNX Runtime is older than its interface");
  const functionOf = (place: keyof typeof PLACES, result: string, types: string[]): Call =>
    call(koffi.decode(table, PLACES[place] * POINTER_BYTES, POINTER), result, types);
  const messageOf = functionOf("getErrorMessage", "const char *", [POINTER]);
  const release = functionOf("releaseStatus", "void", [POINTER]);
  return {
    checked: (place, types) => {
      const run = functionOf(place, POINTER, types);
      return (...args) => {
        const status = run(...args);
        if (!status) return;
        const message = String(messageOf(status));
        release(status);
        throw new Error(message);
      };
    },
  };
}

const typeOf = (type: string) =>
  type === OUT_POINTER ? koffi.out(koffi.pointer("void *")) : type;

function allocate(bytes: number): Memory {
  const address = koffi.alloc("uint8_t", bytes) as Pointer;
  const buffer = koffi.view(address, bytes);
  new Uint8Array(buffer).fill(0);
  return { address, buffer };
}

function textAddress(text: string): Pointer {
  const bytes = Buffer.from(`${text}\0`, "utf8");
  const { address, buffer } = allocate(bytes.length);
  new Uint8Array(buffer).set(bytes);
  return address;
}

function pointers(all: Pointer[]): Pointer {
  const { address, buffer } = allocate(all.length * POINTER_BYTES);
  new BigUint64Array(buffer).set(all);
  return address;
}
