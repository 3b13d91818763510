// The dashboard at `/`: a small application over the public API, for whoever has an API key.
// Bundled by ../build.ts when it is first asked for.
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
// First: what pages say of their own parts then holds against it.
import "./dashboard.css";
import { render } from "preact";
import { App } from "./app.tsx";
import "./kit/kept-focus.ts";
import "./kit/leaving.ts";
import "./kit/translators.ts";
import { LANGUAGE } from "./kit/texts.ts";
import { applyTheme } from "./kit/theme.ts";
import { showAsKept } from "./kit/zone.ts";

applyTheme();
showAsKept();
document.documentElement.lang = LANGUAGE;
const root = document.getElementById("app");
if (root) render(<App />, root);
