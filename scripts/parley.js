// The program that `npm run parley` runs.
import "../src/require-node.js";
import { entryOf } from "./entry.js";

await import(entryOf("cli"));
