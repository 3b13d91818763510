// The dashboard at `/`: a small application on the public API, for members and for people with an
// API key. Bundled by ../build.ts when first requested.
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
// Imported first, so that the styles of pages and parts override it.
import "./dashboard.css";
import { render } from "preact";
import { App } from "./app.tsx";
import "./kit/kept-focus.ts";
import "./kit/leaving.ts";
import "./kit/translators.ts";
import { LANGUAGE } from "./kit/texts.ts";
import { showAsKept } from "./kit/zone.ts";

showAsKept();
document.documentElement.lang = LANGUAGE;
const root = document.getElementById("app");
if (root) render(<App />, root);
