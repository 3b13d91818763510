// Which files of a folder make a streaming model of sherpa-onnx. The operator's folder is as the
// model was published: names vary, the parts of names do not.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Members of the package's `modelConfig`; paths are absolute. */
export type SherpaModel = { tokens: string } & (
  | { transducer: { encoder: string; decoder: string; joiner: string } }
  | { paraformer: { encoder: string; decoder: string } }
  | { zipformer2Ctc: { model: string } }
);

/** The model, or a sentence that says what is missing. */
export function findSherpaModel(folder: string): SherpaModel | string {
  const tokens = join(folder, "tokens.txt");
  if (!existsSync(tokens)) return `has no tokens.txt: ${folder}`;
  const models = readdirSync(folder).filter((file) => file.endsWith(".onnx")).sort();
  // The smaller weights understand as well and need a third of the time.
  const find = (part: string): string | null => {
    const named = models.filter((file) => file.includes(part));
    const best = named.find((file) => file.includes("int8")) ?? named[0];
    return best === undefined ? null : join(folder, best);
  };
  const [encoder, decoder, joiner] = [find("encoder"), find("decoder"), find("joiner")];
  if (encoder && decoder && joiner) return { tokens, transducer: { encoder, decoder, joiner } };
  if (encoder && decoder) return { tokens, paraformer: { encoder, decoder } };
  const model = encoder || decoder || joiner ? null : find("");
  if (model) return { tokens, zipformer2Ctc: { model } };
  return `has no streaming model (encoder, decoder and joiner, or one of CTC): ${folder}`;
}
