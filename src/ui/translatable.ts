// Makes the texts of the dashboard's modules translatable while they are bundled, so that its pages
// are written in plain English: the English text is the key of its translations, which
// dashboard/kit/texts.ts looks up. Called by build.ts and link.ts; scripts/texts.ts lists the keys.
//
// These are texts: what stands between JSX tags, in an attribute or property that people read
// (below), and any other string that begins with a capital letter and has a small one.
// Everything else is code, until a module wraps it in `t` itself. A sentence with values or
// elements in it is one text with a place in braces for each.
import { Parser } from "acorn";
import jsx from "acorn-jsx";
import { transform } from "sucrase";
import type * as Texts from "./dashboard/kit/texts.ts";

interface Node {
  type: string;
  start: number;
  end: number;
  [field: string]: unknown;
}

interface Translatable {
  /** JavaScript without types, its JSX still in place. */
  code: string;
  /** Keys. Null: the text has one form; else its singular, the key being the plural. */
  texts: Map<string, string | null>;
}

type Part = string | { name: string; code: string };

/** Properties and attributes that people read, whatever letter their texts begin with. */
const READ_PROPERTIES = new Set(["label", "title", "hint", "placeholder", "note", "text"]);
const READ_ATTRIBUTES = new Set([
  ...READ_PROPERTIES, "alt", "action", "submit", "empty", "none", "sub", "main",
  "aria-label", "aria-description", "aria-roledescription",
]);
/** Attributes for the browser or for code, even where their values look like texts. */
const UNREAD = new Set([
  "class", "key", "id", "href", "src", "type", "role", "for", "dir", "lang", "rel", "target", "kind",
  "icon", "name", "style", "tone", "needs", "path", "viewBox", "d", "autoComplete", "autocomplete",
  "aria-keyshortcuts",
]);
/** Functions whose string arguments are names in the code. */
const NAMING = /(?:^|\.)(?:t|plural|later|asIs|set|get|setRequestHeader|DOMException|matches|querySelector)$/;
const COMPARISONS = new Set(["===", "!==", "==", "!=", "in", "<", ">"]);
const READS_AS_TEXT = /\p{Lu}[^]*\p{Ll}/u;
const BEGINS_WITH_CAPITAL = /^.[“(]?\p{Lu}(?![\d$])/u;
const HAS_WORDS = /\p{L}/u;
/** Addresses, examples of names and the like, which are the same in every language. */
const IS_CODE = /^[^\s\p{Lu}]*[:/@._<{-][^\s\p{Lu}]*$/u;
/** Their content is what somebody types or a program reads. */
const VERBATIM = /^<(?:code|kbd|pre|samp)\b/;
type Lookup = keyof Pick<typeof Texts, "t" | "filled">;
/** The names under which a rewritten module imports functions of dashboard/kit/texts.ts. */
const NAMES: Record<Lookup, string> = { t: "$t", filled: "$filled" };
const IMPORT =
  `import { t as ${NAMES.t}, filled as ${NAMES.filled} } from "#ui/dashboard/kit/texts.ts";`;

const Tsx = Parser.extend(jsx());

/** The dashboard's modules, except texts.ts, which looks texts up itself, and typings. */
export const hasTexts = (file: string): boolean =>
  /[\\/]ui[\\/]dashboard[\\/].+\.tsx?$/.test(file) && !/kit[\\/]texts\.ts$|\.d\.ts$/.test(file);

export function translatable(source: string, file: string): Translatable {
  const { code } = transform(source, {
    filePath: file, disableESTransforms: true, jsxRuntime: "preserve",
    transforms: file.endsWith("x") ? ["typescript", "jsx"] : ["typescript"],
  });
  const tree = Tsx.parse(code, { ecmaVersion: "latest", sourceType: "module" });
  const writing = new Writing(code);
  const written = writing.write(tree as unknown as Node, false);
  return { code: writing.texts.size > 0 ? IMPORT + written : written, texts: writing.texts };
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

/** In source order. */
function childrenOf(node: Node): Node[] {
  const children = Object.values(node).flat().filter(isNode);
  return children.sort((one, other) => one.start - other.start || other.end - one.end)
    // In `{ name }` the key and the value are the same place.
    .filter((child, index) => index === 0 || child.start >= (children[index - 1]?.end ?? 0));
}

const nodeOf = (value: unknown): Node => value as Node;
const nodesOf = (value: unknown): Node[] => value as Node[];
const nameIn = (node: Node): string => String(node.name ?? node.value);

/** As JSX reads the text between tags: lines are joined, their ends trimmed. */
function betweenTags(text: string): string {
  const lines = text.split(/\r?\n/);
  return lines.map((line, index) => {
    const begun = index === 0 ? line : line.replace(/^[ \t]+/, "");
    return index === lines.length - 1 ? begun : begun.replace(/[ \t]+$/, "");
  }).filter((line) => line !== "").join(" ");
}

/** A string, a template, or such a thing with something added to it. */
function isString(node: Node): boolean {
  if (node.type === "Literal") return typeof node.value === "string";
  if (node.type === "TemplateLiteral") return true;
  return node.type === "BinaryExpression" && node.operator === "+" &&
    [nodeOf(node.left), nodeOf(node.right)].some(isString);
}

/** The words of a string, without its values. */
function wordsOf(node: Node): string {
  switch (node.type) {
    case "Literal": return typeof node.value === "string" ? node.value : "";
    case "BinaryExpression": return wordsOf(nodeOf(node.left)) + wordsOf(nodeOf(node.right));
    case "TemplateLiteral":
      return nodesOf(node.quasis).map(({ value }) => (value as { cooked: string }).cooked).join("");
    default: return "";
  }
}

/** The name that stands for a value in a text. */
function placeOf(node: Node): string {
  switch (node.type) {
    case "Identifier": return nameIn(node);
    case "MemberExpression":
      return node.computed ? placeOf(nodeOf(node.object)) : nameIn(nodeOf(node.property));
    case "CallExpression": {
      const [first] = nodesOf(node.arguments);
      const place = first ? placeOf(first) : "part";
      return place === "part" ? placeOf(nodeOf(node.callee)) : place;
    }
    case "ChainExpression": return placeOf(nodeOf(node.expression));
    case "LogicalExpression": case "BinaryExpression": return placeOf(nodeOf(node.left));
    case "JSXElement": {
      const { name } = nodeOf(node.openingElement) as unknown as { name: Node };
      const tag = name.type === "JSXIdentifier" ? nameIn(name) : "part";
      return tag.charAt(0).toLowerCase() + tag.slice(1);
    }
    case "UnaryExpression": return placeOf(nodeOf(node.argument));
    default: return "part";
  }
}

/** Rewrites a module so that its texts are looked up, and collects them. */
class Writing {
  readonly texts: Translatable["texts"] = new Map();
  readonly #code: string;

  constructor(code: string) {
    this.#code = code;
  }

  #sliceOf({ start, end }: Node): string {
    return this.#code.slice(start, end);
  }

  #copy(node: Node, isRead = false): string {
    let copied = "";
    let at = node.start;
    for (const child of childrenOf(node)) {
      copied += this.#code.slice(at, child.start) + this.write(child, isRead);
      at = child.end;
    }
    return copied + this.#code.slice(at, node.end);
  }

  #textOf(parts: Part[], isBetweenTags: boolean): string {
    const values = new Map<string, string>();
    const text = parts.map((part) => {
      if (typeof part === "string") return part;
      let name = part.name;
      for (let next = 2; (values.get(name) ?? part.code) !== part.code; next += 1) {
        name = `${part.name}${next}`;
      }
      values.set(name, part.code);
      return `{${name}}`;
    }).join("");
    if (!this.texts.has(text)) this.texts.set(text, null);
    const given = [...values].map(([name, value]) => `${name}: ${value}`).join(", ");
    if (given === "") return `${NAMES.t}(${JSON.stringify(text)})`;
    return `${NAMES[isBetweenTags ? "filled" : "t"]}(${JSON.stringify(text)}, { ${given} })`;
  }

  #partsOf(node: Node): Part[] {
    if (!isString(node)) return [{ name: placeOf(node), code: this.write(node, true) }];
    if (node.type === "Literal") return [String(node.value)];
    if (node.type === "TemplateLiteral") {
      const values = nodesOf(node.expressions);
      return nodesOf(node.quasis).flatMap((quasi, index): Part[] => {
        const { cooked } = quasi.value as { cooked: string };
        const value = values[index];
        const said = cooked === "" ? [] : [cooked];
        return value ? [...said, { name: placeOf(value), code: this.write(value, true) }] : said;
      });
    }
    return [nodeOf(node.left), nodeOf(node.right)].flatMap((side) => this.#partsOf(side));
  }

  #writeString(node: Node, isRead: boolean): string {
    const said = wordsOf(node);
    const isText = isRead ? HAS_WORDS.test(said) && !IS_CODE.test(said)
      : READS_AS_TEXT.test(said) && BEGINS_WITH_CAPITAL.test(this.#sliceOf(node));
    return isText ? this.#textOf(this.#partsOf(node), false) : this.#copy(node);
  }

  #writeAttribute(node: Node): string {
    const name = this.#sliceOf(nodeOf(node.name));
    if (!isNode(node.value) || UNREAD.has(name)) return this.#sliceOf(node);
    const value = this.write(node.value, READ_ATTRIBUTES.has(name));
    return `${name}=${value.startsWith(NAMES.t) ? `{${value}}` : value}`;
  }

  /** Not part of the sentence when at its start or end: icons, and what is shown conditionally. */
  #isApart(child: Node): boolean {
    if (child.type === "JSXExpressionContainer") {
      const { type, operator } = nodeOf(child.expression);
      return type === "LogicalExpression" && operator === "&&";
    }
    return child.type === "JSXElement" &&
      (nodesOf(child.children).length === 0 || /^[A-Z]/.test(this.#sliceOf(child).slice(1)) ||
      /^<(?:p|div|ul|ol|dl|form|table|section|label)\b/.test(this.#sliceOf(child)));
  }

  #writeSentence(children: Node[]): string {
    const parts = children.flatMap((child): Part[] => {
      if (child.type === "JSXText") return [betweenTags(String(child.value))];
      const inner = child.type === "JSXExpressionContainer" ? nodeOf(child.expression) : child;
      if (inner.type === "JSXEmptyExpression") return [];
      if (inner.type === "Literal" && typeof inner.value === "string") return [inner.value];
      return [{ name: placeOf(inner), code: this.write(inner, true) }];
    }).filter((part) => part !== "");
    const said = (index: number): string => {
      const part = parts.at(index);
      return typeof part === "string" ? part : "";
    };
    const [before] = /^\s*/.exec(said(0)) ?? [""];
    const [after] = /\s*$/.exec(said(-1)) ?? [""];
    if (before !== "") parts[0] = said(0).trimStart();
    if (after !== "") parts[parts.length - 1] = said(-1).trimEnd();
    const space = (text: string): string => (text === "" ? "" : `{${JSON.stringify(text)}}`);
    return `${space(before)}{${this.#textOf(parts, true)}}${space(after)}`;
  }

  #writeChildren(children: Node[]): string {
    const isSaid = (child: Node): boolean =>
      child.type === "JSXText" && HAS_WORDS.test(String(child.value));
    if (!children.some(isSaid)) return children.map((child) => this.write(child, true)).join("");
    const isOutside = (child: Node): boolean => this.#isApart(child) ||
      (child.type === "JSXText" && betweenTags(String(child.value)).trim() === "");
    let first = 0;
    let last = children.length;
    while (children.slice(first, first + 1).some(isOutside)) first += 1;
    while (children.slice(last - 1, last).some(isOutside)) last -= 1;
    const outside = (part: Node[]): string => part.map((child) => this.write(child, true)).join("");
    return outside(children.slice(0, first)) + this.#writeSentence(children.slice(first, last)) +
      outside(children.slice(last));
  }

  #writeElement(node: Node): string {
    const opening = nodeOf(node.openingElement ?? node.openingFragment);
    const closing = (node.closingElement ?? node.closingFragment) as Node | null;
    const children = nodesOf(node.children);
    const inner = VERBATIM.test(this.#sliceOf(opening))
      ? children.map((child) => this.write(child, false)).join("")
      : this.#writeChildren(children);
    return this.#copy(opening) + inner + (closing ? this.#sliceOf(closing) : "");
  }

  #writeCall(node: Node): string {
    const callee = this.#sliceOf(nodeOf(node.callee));
    const given = nodesOf(node.arguments);
    const [first, one, more] = given.map((argument) =>
      (isString(argument) ? wordsOf(argument) : null));
    const [said] = given;
    // As in other texts, the values of a template are taken out of it.
    if (callee === "t" && first && said && given.length === 1) {
      return this.#textOf(this.#partsOf(said), false);
    }
    if (callee === "t" && first) this.texts.set(first, this.texts.get(first) ?? null);
    if (callee === "plural" && one && more) this.texts.set(more, one);
    return NAMING.test(callee) ? this.#copyNames(node) : this.#copy(node);
  }

  /** Copies a call whose own strings are names; functions among its arguments may contain texts. */
  #copyNames(node: Node): string {
    let copied = "";
    let at = node.start;
    for (const child of childrenOf(node)) {
      copied += this.#code.slice(at, child.start) +
        (isString(child) ? this.#sliceOf(child) : this.write(child, false));
      at = child.end;
    }
    return copied + this.#code.slice(at, node.end);
  }

  #writeProperty(node: Node, isRead: boolean): string {
    const [key, value] = [nodeOf(node.key), nodeOf(node.value)];
    if (node.shorthand || node.method || node.kind !== "init") return this.#copy(node, isRead);
    if (nameIn(key) === "Authorization") return this.#sliceOf(node);
    const name = node.computed ? `[${this.write(key, false)}]` : this.#sliceOf(key);
    return `${name}: ${this.write(value, READ_PROPERTIES.has(nameIn(key)))}`;
  }

  /** `isRead`: people read what stands here, whatever letter it begins with. */
  write(node: Node, isRead: boolean): string {
    switch (node.type) {
      case "Literal": case "TemplateLiteral":
        return isString(node) ? this.#writeString(node, isRead) : this.#sliceOf(node);
      case "JSXElement": case "JSXFragment": return this.#writeElement(node);
      case "JSXAttribute": return this.#writeAttribute(node);
      case "JSXExpressionContainer": return this.#copy(node, isRead);
      case "LogicalExpression": return this.#copy(node, isRead);
      case "ConditionalExpression": {
        const test = nodeOf(node.test);
        const [yes, no] = [nodeOf(node.consequent), nodeOf(node.alternate)];
        return this.#code.slice(node.start, test.start) + this.write(test, false) +
          this.#code.slice(test.end, yes.start) + this.write(yes, isRead) +
          this.#code.slice(yes.end, no.start) + this.write(no, isRead) +
          this.#code.slice(no.end, node.end);
      }
      case "BinaryExpression":
        if (COMPARISONS.has(String(node.operator))) return this.#copyNames(node);
        return isString(node) ? this.#writeString(node, isRead) : this.#copy(node);
      case "CallExpression": case "NewExpression": return this.#writeCall(node);
      case "Property": return this.#writeProperty(node, isRead);
      case "ImportDeclaration": case "ExportAllDeclaration": case "ImportExpression":
      case "TaggedTemplateExpression": return this.#sliceOf(node);
      case "SwitchCase": {
        const test = node.test as Node | null;
        const from = test ? test.end : node.start;
        const rest = { ...node, test: null, start: from };
        return this.#code.slice(node.start, from) + this.#copy(rest);
      }
      default: return this.#copy(node);
    }
  }
}
