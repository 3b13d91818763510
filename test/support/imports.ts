// What a file of the project imports, and where it leads: read from its text, so that types and
// imports at run time count alike.
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

export interface Import {
  file: string;
  /** As it is written. */
  name: string;
  /** Path from the root for the project's own files, else the package's name. */
  target: string;
  isOwn: boolean;
}

type Places = Record<`#${string}/*`, string>;

let places: [prefix: string, folder: string][] | null = null;

function placesOf(root: string): [prefix: string, folder: string][] {
  const { imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { imports: Places };
  return Object.entries(imports).map(([name, folder]) => [name.slice(0, -1), folder.slice(2, -1)]);
}

const IMPORT = /(?:^(?:import|export)\b[^"';=]*?\bfrom\s+|^import\s+|\bimport\()"([^"]+)"/gm;

export function importsOf(root: string, file: string): Import[] {
  places ??= placesOf(root);
  const known = places;
  return [...readFileSync(join(root, file), "utf8").matchAll(IMPORT)].map(([, name = ""]) => {
    if (name.startsWith(".")) {
      return { file, name, target: normalize(join(dirname(file), name)), isOwn: true };
    }
    const place = known.find(([prefix]) => name.startsWith(prefix));
    return place
      ? { file, name, target: place[1] + name.slice(place[0].length), isOwn: true }
      : { file, name, target: name, isOwn: false };
  });
}
