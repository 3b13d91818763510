// Browsers that translate a page replace each text node by an element of their own. Preact goes on
// changing, moving and removing the node, which nobody sees any more: balances and states stood
// still. Here the node stays, empty, before its translation, which follows what happens to it.
// Loaded by main.tsx.
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

interface Translation {
  original: string;
  shown: Element;
}

const translations = new WeakMap<Node, Translation>();
/** The text node that each translation replaces. */
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

/** The page now says something else, or nothing: its translation is out of date. */
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
  // If the node is still in place, the translator has taken its translation back.
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
  // The changes made here need no handling.
  observer.takeRecords();
});
observer.observe(document.body, { childList: true, characterData: true, subtree: true });
