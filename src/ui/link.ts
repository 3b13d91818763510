// Joins the modules of a page to one script without a compiler of the machine's own: for a checkout
// without development's packages, where esbuild is not. What it makes runs alike, and is larger.
// Called by build.ts.
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { transform } from "sucrase";
import { hasTexts, translatable } from "./translatable.ts";

interface Linked {
  js: string;
  css: string;
}

/** How the compiler writes an import; a page's own code has no other call of this name. */
const REQUIRE = /\brequire\((["'])([^"']+)\1\)/g;
/** A module of the page that it loads when it is needed: here it is in the script already. */
const LATER = /\bimport\((["'])(\.[^"']+\.tsx?)\1\)/g;
/** What a module gives of its own, and what it passes on of another. */
const EXPORT = /\bexports\.(\w+) = |\b_createNamedExportFrom\(\w+, '(\w+)'/g;

/** A stylesheet beside the module, the module of this project or that of a package. */
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
  // What is imported by its address while the page runs is no module of this script.
  preserveDynamicImport: true,
}).code;

/** Each module once, what it imports before it, as stylesheets have to be. */
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
