// The program that `npm run parley` runs.
import { entryOf } from "./entry.js";

await import(entryOf("cli"));
