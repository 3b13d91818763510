// Stylesheets in the widget's shadow root. Adopted, as no page's policy forbids; Safari adopts them
// since 16.4, and before it an element takes their place.

/** What undoes it. */
export function dress(shadow: ShadowRoot, text: string): () => void {
  if (!("adoptedStyleSheets" in shadow)) return dressByElement(shadow, text);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  shadow.adoptedStyleSheets = [...shadow.adoptedStyleSheets, sheet];
  return () => {
    shadow.adoptedStyleSheets = shadow.adoptedStyleSheets.filter((one) => one !== sheet);
  };
}

function dressByElement(shadow: ShadowRoot, text: string): () => void {
  const style = document.createElement("style");
  style.textContent = text;
  shadow.append(style);
  return () => style.remove();
}
