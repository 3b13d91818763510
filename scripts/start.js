// The program that `npm start` runs.
import "../src/require-node.js";
import { entryOf } from "./entry.js";
import { trim } from "./trim.js";

trim();
await import(entryOf("main"));
