// Stylesheets in the widget's shadow root. They are adopted, which no page's content security
// policy forbids; Safari before 16.4 cannot adopt them and gets a <style> element.

/** Returns a function that removes the stylesheet. */
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
