// The program that `npm start` runs.
import { entryOf } from "./entry.js";
import { trim } from "./trim.js";

trim();
await import(entryOf("main"));
