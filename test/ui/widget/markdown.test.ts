// Markdown of replies in the widget: what it shows, while it is being written too, and what of a
// hostile text never happens.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { programFile } from "#core/program.ts";
import { bundlePage } from "#ui/build.ts";
import { linkPage } from "#ui/link.ts";
import { askUntil } from "#support/asking.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { isAnswered, open, startWorld, strictPolicy, type Seen } from "#support/pages/widget-page.ts";

const skip = noBrowser();
const { model, server, withWidget, held, close } = await startWorld();
after(close);

/** What the widget makes of a text, as its own page would show it. */
const rendered = ({ page }: Seen, text: string, isWhole = true): Promise<string> => page.evaluate(
  `import("${server.url}/widget-chat.js").then(({ renderMarkdown }) =>
    renderMarkdown(${JSON.stringify(text)}, ${isWhole}, (name) => name)
      .map((one) => one.outerHTML).join("").replaceAll(' dir="auto"', ""))`);

test("[WG249] a script linked without a compiler exports the same names as the compiled one", { skip }, async () => {
  await withWidget({}, async ({ page }) => {
    for (const name of ["chat", "call"]) {
      const { js } = linkPage(programFile(`src/ui/widget/${name}.ts`), "esm");
      const [, names = ""] = /^export const \{ (.+?) \} = /.exec(js) ?? [];
      assert.deepEqual(names.split(", ").sort(), await page.evaluate(
        `import("${server.url}/widget-${name}.js").then((all) => Object.keys(all).sort())`));
    }
  });
});

const LINK = 'target="_blank" rel="noopener noreferrer"';

test("[WG209] tables, quotes, nested lists and code of a reply are rendered as such", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const cases: [text: string, html: string][] = [
      ["> quoted\n> **twice**", "<blockquote><p>quoted<br><strong>twice</strong></p></blockquote>"],
      ["| A | B |\n|---|---|\n| 1 | `2` |", '<div tabindex="0" role="group" aria-label="table"><table>'
        + '<thead><tr><th scope="col">A</th><th scope="col">B</th></tr></thead>'
        + "<tbody><tr><td>1</td><td><code>2</code></td></tr></tbody></table></div>"],
      ["- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"],
      ["3. three\n4. four", '<ol start="3"><li>three</li><li>four</li></ol>'],
      ["# Head\ntext ~~old~~", "<p><strong>Head</strong></p><p>text <s>old</s></p>"],
      ["[call](tel:+4930123) <a@b.example>", `<p><a href="tel:+4930123" ${LINK}>call</a> `
        + `<a href="mailto:a@b.example" ${LINK}>a@b.example</a></p>`],
      ["`&lt;` &lt;b&gt; a & b", "<p><code>&amp;lt;</code> &lt;b&gt; a &amp; b</p>"],
    ];
    for (const [text, html] of cases) assert.equal(await rendered(seen, text), html, text);
  });
});

test("[WG254] a table of many columns is scrolled, with its words whole", { skip }, async () => {
  const row = "| Wednesday ".repeat(8);
  await withWidget({ context: { viewport: { width: 360, height: 740 } } }, async (seen) => {
    model.script(() => ({ tokens: [`${row}|\n${"|---".repeat(8)}|\n${row}|`] }));
    await open(seen);
    await seen.say("When?");
    await isAnswered(seen);
    // What was streamed gives place to what is stored: the one that was found may be no more.
    await askUntil(() => seen.log.locator("table").last().evaluate((table) => ({
      box: (table.parentElement?.scrollWidth ?? 0) - (table.parentElement?.clientWidth ?? 0),
      cell: (table.querySelector("td")?.clientHeight ?? 0) / parseFloat(getComputedStyle(table).lineHeight),
    })), ({ box, cell }) => box > 0 && cell < 2);
  });
});

test("[WG255] lists nested twelve deep stay within their message, with room for their words", { skip }, async () => {
  const deep = Array.from({ length: 12 }, (_, at) => `${"   ".repeat(at)}1. Step ${at} of all`).join("\n");
  model.script(() => ({ tokens: [deep] }));
  await withWidget({ context: { viewport: { width: 320, height: 640 } } }, async (seen) => {
    await open(seen);
    await seen.say("How?");
    await isAnswered(seen);
    await askUntil(() => seen.log.locator("li").evaluateAll((items) => items.map((item) =>
      item.getBoundingClientRect().right > item.closest(".item")!.getBoundingClientRect().right
        ? 0 : item.clientWidth)),
    (widths) => widths.length === 12 && Math.min(...widths) > 60);
  });
});

test("[WG210] hostile text never becomes markup, a script address or a request", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const hostile = [
      "<script>document.title=1</script>", "<img src=x onerror=alert(1)>", "<svg><script>1</script></svg>",
      "[a](javascript:alert(1))", "[a](JAVASCRIPT:alert(1))", "[a](&#106;avascript:alert(1))",
      "[a](java&Tab;script:alert(1))", "[a](data:text/html;base64,PHNjcmlwdD4=)", "[a](vbscript:x)",
      "[a](//evil.example/x)", "![a](javascript:alert(1))", "![a](https://a.example/pixel.png)",
      "<javascript:alert(1)>", "[a]: javascript:alert(1)\n\n[a]", '[a](https://x.example "onmouseover=alert(1)")',
      "```html\n<script>1</script>\n```", "> > > <iframe srcdoc=x>", "| <b onclick=1> |\n|-|\n| <style>*{}</style> |",
      "<a href='javascript:1' id=x name=getElementById>x</a>", "<form action=https://evil.example><input name=x>",
    ];
    const found = await seen.page.evaluate(`import("${server.url}/widget-chat.js").then(({ renderMarkdown }) =>
      ${JSON.stringify(hostile)}.flatMap((text) => renderMarkdown(text, true, String)).flatMap((block) =>
        [block, ...block.querySelectorAll("*")].flatMap((one) =>
          [one.localName, ...[...one.attributes].map(({ name, value }) => name === "href" ? new URL(value).protocol : name)])))`);
    assert.deepEqual([...new Set(found as string[])].sort(), [
      "a", "aria-label", "blockquote", "code", "dir", "div", "https:", "p", "pre", "rel", "role", "scope",
      "tabindex", "table", "target", "tbody", "td", "th", "thead", "tr",
    ]);
    assert.equal(await seen.page.title(), "Harbour Bikes");
  });
});

test("[WG211] a hundred thousand brackets, stars or quotes do not block the page", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const marks = ["[", "![", "[a](", "](", "*", "**a ", "_a", "`a", ">", "- ", "| a ", "<a ", "~~a", "[]", "&"];
    const slowest = await seen.page.evaluate(`import("${server.url}/widget-chat.js").then(({ renderMarkdown }) =>
      Math.max(...${JSON.stringify(marks)}.flatMap((mark) => [100000, 29000, 2000].map((chars) => {
        const text = mark.repeat(chars / mark.length);
        // The best of three: a machine may be slow for a moment, a parser is each time.
        return Math.min(...[1, 2, 3].map(() => {
          const began = performance.now();
          const shown = renderMarkdown(text, chars !== 29000, String);
          if (chars > 30000 && shown[0].textContent !== text) throw new Error(mark);
          return performance.now() - began;
        }));
      }))))`);
    assert.ok((slowest as number) < 2000, `${slowest as number}`);
  });
});

test("[WG212] half-written links, bold text and code are never shown during a reply", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const tokens = ["See **our ", "shop** and [the pri", "ces](https://shop.exa", "mple/prices) now."];
    const shown = ["See our", "See our shop and the pri", "See our shop and the prices"];
    for (const [at, text] of shown.entries()) {
      const reply = held(at + 1, tokens);
      if (at === 0) await open(seen);
      await seen.say("Hello");
      const last = seen.log.locator(".item.assistant").last();
      await last.getByText(text, { exact: true }).waitFor();
      assert.doesNotMatch(await last.innerText(), /[[\]*]|https/);
      assert.equal(await last.locator("a").count(), 0);
      reply.go();
      await last.getByText("See our shop and the prices now.").waitFor();
      await seen.page.getByRole("button", { name: "Send" }).waitFor();
      assert.equal(await last.locator("a").getAttribute("href"), "https://shop.example/prices");
    }
    assert.equal(await rendered(seen, "a `b", false), "<p>a <code>b</code></p>");
    model.script(null);
  });
});

test("[WG213] replies are shown on pages whose CSP allows no trusted types policy", { skip }, async () => {
  const policy = strictPolicy(`${server.url} ${server.url.replace("http", "ws")}`, server.url);
  const headers = { "content-security-policy": `${policy}; trusted-types 'none'` };
  await withWidget({ headers }, async (seen) => {
    model.script(() => ({ tokens: ["Is **bold** and [linked](https://a.example/)."] }));
    await open(seen);
    await seen.say("Hello");
    await seen.log.getByText("Is bold and linked.").waitFor();
  });
});

test("[WG214] the panel is loaded when it is opened, or says that it could not be loaded", { skip }, async () => {
  await withWidget({}, async (seen) => {
    let loads = 0;
    await seen.page.route("**/widget-chat.js*", (route) => {
      loads += 1;
      return loads === 1 ? route.abort() : route.continue();
    });
    await seen.launcher.waitFor();
    assert.equal(loads, 0);
    await seen.launcher.evaluate((launcher) => (launcher as HTMLElement).click());
    await seen.page.locator('assistant-chat .launcher[title*="could not be started"]').waitFor();
    await open(seen);
    assert.equal(loads, 2);
  });
  const { gzip } = await bundlePage("widget-chat.js");
  assert.ok(gzip.length <= 56 * 1024, `${gzip.length}`);
});
