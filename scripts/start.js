// The program that `npm start` runs.
import { entryOf } from "./entry.js";

await import(entryOf("main"));
