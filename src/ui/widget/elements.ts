// Making DOM nodes in few words. Never from markup.

type Attributes = Record<string, string>;

export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name, attributes: Attributes = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/**
 * Calls `send` when the form's button is clicked, which Enter in a field does too. The `submit`
 * event is not used: a sandboxed frame that may not submit forms never fires it.
 */
export function sends(form: HTMLFormElement, send: () => void): void {
  form.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.closest("button:not([type])")) return;
    event.preventDefault();
    if (form.reportValidity()) send();
  });
}

const SVG = "http://www.w3.org/2000/svg";

/** Drawn on 24 by 24 in the text's colour. */
export function icon(path: string, isMirrored = false): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  const attributes = {
    viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", "stroke-width": "2",
    "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true",
  };
  for (const [key, value] of Object.entries(attributes)) svg.setAttribute(key, value);
  if (isMirrored) svg.setAttribute("class", "mirrored");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

export const ICONS = {
  chat: "M21 12a8 8 0 0 1-8 8H4l2-3.5A8 8 0 1 1 21 12z",
  close: "M6 6l12 12M18 6L6 18",
  send: "M4 12h15M13 6l6 6-6 6",
  stop: "M6 6h12v12H6z",
  call: "M6 3h3l2 5-2.5 1.5a11 11 0 0 0 6 6L16 13l5 2v3a3 3 0 0 1-3 3A15 15 0 0 1 3 6a3 3 0 0 1 3-3z",
};
