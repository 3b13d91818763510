// What a file of the project imports, where it leads, and what a file exports: read from its text,
// so that types and imports at run time count alike.
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

export interface Import {
  file: string;
  /** As it is written in the import. */
  name: string;
  /** Path from the root for the project's own files, else the package's name. */
  target: string;
  isOwn: boolean;
  /** As the other file exports them; `*` if all of it is imported. */
  names: string[];
}

type Places = Record<`#${string}/*`, string>;

let places: [prefix: string, folder: string][] | null = null;

function placesOf(root: string): [prefix: string, folder: string][] {
  const { imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { imports: Places };
  return Object.entries(imports).map(([name, folder]) => [name.slice(0, -1), folder.slice(2, -1)]);
}

const IMPORT =
  /(?:^(?:import|export)\b([^"';=]*?)\bfrom\s+|^import\s+|\bimport\()"([^"]+)"(?:\)\.(\w+))?/gm;

/** The names before `as` in what stands between braces. */
const named = (braces: string): string[] =>
  [...braces.matchAll(/(?:^|,)\s*(?:type\s+)?(\w+)/g)].map(([, name = ""]) => name);

function namesOf(clause: string | undefined, member: string | undefined): string[] {
  if (clause === undefined) return [member ?? "*"];
  const braces = /\{([^}]*)\}/.exec(clause)?.[1];
  if (braces !== undefined) return named(braces);
  return [clause.includes("*") ? "*" : "default"];
}

export function importsOf(root: string, file: string): Import[] {
  places ??= placesOf(root);
  const known = places;
  const all = [...readFileSync(join(root, file), "utf8").matchAll(IMPORT)];
  return all.map(([, clause, name = "", member]) => {
    const names = namesOf(clause, member);
    if (name.startsWith(".")) {
      return { file, name, names, target: normalize(join(dirname(file), name)), isOwn: true };
    }
    const place = known.find(([prefix]) => name.startsWith(prefix));
    return place
      ? { file, name, names, target: place[1] + name.slice(place[0].length), isOwn: true }
      : { file, name, names, target: name, isOwn: false };
  });
}

const DECLARED =
  /^export\s+(?:async\s+)?(?:abstract\s+)?(?:function\*?|const|let|class|interface|type)\s+(\w+)/gm;
const LISTED = /^export\s+(?:type\s+)?\{([^}]*)\}/gm;

/** The names a file exports, those it passes on from another file among them. */
export const exportsOf = (text: string): string[] => [
  ...[...text.matchAll(DECLARED)].map(([, name = ""]) => name),
  ...[...text.matchAll(LISTED)].flatMap(([, braces = ""]) => named(braces)),
];
