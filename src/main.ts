// Starts the server and sets the exit code. `npm start` runs this; `parley serve` runs the same.
import "./require-node.js";
import { serve } from "./app/serve.ts";

process.exitCode = await serve(process.argv.slice(2));
