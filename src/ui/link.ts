// Joins the modules of a page into one script without esbuild, for a checkout without the
// development dependencies. The script behaves the same but is larger. Called by build.ts.
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { transform } from "sucrase";
import { hasTexts, translatable } from "./translatable.ts";

interface Linked {
  js: string;
  css: string;
}

/** The compiler's form of an import; no page's own code calls a `require`. */
const REQUIRE = /\brequire\((["'])([^"']+)\1\)/g;
/** A page's dynamic import of its own module, which is already in this script. */
const LATER = /\bimport\((["'])(\.[^"']+\.tsx?)\1\)/g;
/** What a module exports itself, and what it re-exports from another. */
const EXPORT = /\bexports\.(\w+) = |\b_createNamedExportFrom\(\w+, '(\w+)'/g;

/** The file of an import: relative to `from`, else a module of this project or of a package. */
const resolve = (specifier: string, from: string): string => fileURLToPath(
  specifier.startsWith(".")
    ? new URL(specifier, pathToFileURL(from))
    : import.meta.resolve(specifier));

const sourceOf = (file: string): string => {
  const source = readFileSync(file, "utf8");
  return hasTexts(file) ? translatable(source, file).code : source;
};

const compile = (file: string): string => transform(sourceOf(file), {
  filePath: file,
  transforms: /\.tsx?$/.test(file) ? ["typescript", "jsx", "imports"] : ["imports"],
  jsxRuntime: "automatic", jsxImportSource: "preact", production: true,
  disableESTransforms: true,
  // A module imported by its address while the page runs is not part of this script.
  preserveDynamicImport: true,
}).code;

/** Each module once; stylesheets in the order of their imports, on which they depend. */
function gather(entry: string): { modules: string[]; styles: string[]; exported: string[] } {
  const modules: string[] = [];
  const styles: string[] = [];
  const ids = new Map<string, number>();
  const add = (file: string): number => {
    const known = ids.get(file);
    if (known !== undefined) return known;
    const id = ids.size;
    ids.set(file, id);
    if (file.endsWith(".css")) {
      modules[id] = "";
      styles.push(readFileSync(file, "utf8"));
    } else {
      modules[id] = compile(file)
        .replace(REQUIRE, (_, _quote, specifier: string) =>
          `require(${add(resolve(specifier, file))})`)
        .replace(LATER, (_, _quote, specifier: string) =>
          `Promise.resolve().then(() => require(${add(resolve(specifier, file))}))`);
    }
    return id;
  };
  add(entry);
  const exported = new Set([...(modules[0] ?? "").matchAll(EXPORT)]
    .map(([, own, passed = ""]) => own ?? passed));
  return { modules, styles, exported: [...exported] };
}

export function linkPage(entry: string, format: "iife" | "esm"): Linked {
  const { modules, styles, exported } = gather(entry);
  const program = `(() => {
const factories = [
${modules.map((code) => `(require, exports, module) => {\n${code}\n},`).join("\n")}
];
const loaded = [];
const require = (id) => {
  if (loaded[id]) return loaded[id].exports;
  const module = loaded[id] = { exports: {} };
  factories[id](require, module.exports, module);
  return module.exports;
};
return require(0);
})()`;
  return {
    js: format === "esm" && exported.length > 0
      ? `export const { ${exported.join(", ")} } = ${program};\n`
      : `${program};\n`,
    css: styles.join("\n"),
  };
}
