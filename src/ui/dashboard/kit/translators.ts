// Browsers that translate a page put an element of their own in place of each text. Preact goes on
// to change, move and remove the text, which nobody sees any more: balances and states stood still.
// The text stays here, empty, before its translation, and what becomes of it becomes of both.
// Loaded by main.tsx.
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

interface Translation {
  original: string;
  shown: Element;
}

const translations = new WeakMap<Node, Translation>();
/** The text that each translation is in place of. */
const texts = new WeakMap<Node, Text>();

const isNew = (node: Node | null | undefined): node is Element =>
  node instanceof Element && node.localName === "font" && node.isConnected && !texts.has(node);

function keepWithTranslation(text: Text, record: MutationRecord): void {
  const { addedNodes, previousSibling, nextSibling } = record;
  const shown = [addedNodes[0], previousSibling, nextSibling].find(isNew);
  if (!shown || text.isConnected) return;
  translations.set(text, { original: text.data, shown });
  texts.set(shown, text);
  text.data = "";
  shown.before(text);
}

/** The page says something else, be it nothing: nobody has translated that yet. */
function showAsSaid(text: Node): void {
  translations.get(text)?.shown.remove();
  translations.delete(text);
}

/** A text was moved or removed, or its translation was. */
function follow(text: Text, { original, shown }: Translation): void {
  if (text.isConnected && shown.isConnected) {
    if (text.nextSibling !== shown) text.after(shown);
    return;
  }
  // Where it is still in its place, the translator took its own back.
  translations.delete(text);
  text.data = original;
  shown.remove();
}

const observer = new MutationObserver((records) => {
  for (const { type, target } of records) if (type === "characterData") showAsSaid(target);
  for (const record of records) {
    for (const node of [record.target, ...record.removedNodes, ...record.addedNodes]) {
      const text = texts.get(node) ?? node;
      if (!(text instanceof Text)) continue;
      const translation = translations.get(text);
      if (translation) follow(text, translation);
      else keepWithTranslation(text, record);
    }
  }
  // What was done here is nothing to look at.
  observer.takeRecords();
});
observer.observe(document.body, { childList: true, characterData: true, subtree: true });
