// The sentences that stand in a module, for tests of texts: string literals that read as one, with
// `{}` for each value in them.
import ts from "typescript";

/** Null: it is not written out. */
function textOf(node: ts.Node): string | null {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node)) {
    return node.head.text + node.templateSpans.map(({ literal }) => `{}${literal.text}`).join("");
  }
  if (ts.isParenthesizedExpression(node)) return textOf(node.expression);
  const isSum = ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken;
  if (!isSum) return null;
  const [left, right] = [textOf(node.left), textOf(node.right)];
  return left === null && right === null ? null : (left ?? "{}") + (right ?? "{}");
}

/** Where one ends, and another or a value begins. */
const SENTENCE_END = /(?<=\.) (?=\p{Lu}|\{)/u;
const IS_SENTENCE = /^\p{Lu}[^]* [^]*\.$/u;

export function sentencesIn(code: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const text = textOf(node);
    if (text === null) return ts.forEachChild(node, visit);
    found.push(...text.split(SENTENCE_END).filter((part) => IS_SENTENCE.test(part)));
  };
  visit(ts.createSourceFile("x.ts", code, ts.ScriptTarget.Latest));
  return found;
}
