// Small parts shared by several pages about calls and conversations.
import { Icon } from "#ui/dashboard/kit/icons.tsx";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import { useAssistants } from "#ui/dashboard/data/lists.ts";

/** Records name an assistant by uuid, its page by number; one that was deleted has none. */
export function AssistantLink({ uuid, name }: { uuid: string; name: string }) {
  const { value: assistants } = useAssistants();
  const found = assistants?.find((one) => one.uuid === uuid);
  return found ? <a href={`#/assistants/${found.id}`}>{name}</a> : <>{name}</>;
}

const asText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);

/** Names and values as the server has them; renders nothing where there are none. */
export function Values({ title, values, note }: {
  title: string; values: Record<string, unknown>; note?: preact.ComponentChildren;
}) {
  const rows = Object.entries(values);
  if (rows.length === 0 && !note) return null;
  return (
    <Card title={title}>
      {note}
      {rows.length > 0 && (
        <dl class="calls-values">
          {rows.map(([name, value]) => (
            <div key={name}><dt>{name}</dt><dd>{asText(value)}</dd></div>
          ))}
        </dl>
      )}
    </Card>
  );
}

interface FunctionCall {
  name: string;
  arguments: Record<string, unknown>;
  result: Record<string, unknown>;
}

/** JSON with one part per line, even where it was truncated. */
function indented(json: string): string {
  let depth = 0;
  const line = (): string => `\n${"  ".repeat(depth)}`;
  return json.replaceAll(/"(?:[^"\\]|\\.)*"?|\{\s*\}|\[\s*\]|[{}[\],:]|\s+/gs, (token) => {
    if (token.trim() === "") return "";
    if (token === ",") return `,${line()}`;
    if (token === ":") return ": ";
    if (token === "{" || token === "[") {
      depth += 1;
      return `${token}${line()}`;
    }
    if (token !== "}" && token !== "]") return token;
    depth = Math.max(0, depth - 1);
    return `${line()}${token}`;
  });
}

/** A result that is not whole JSON, perhaps because it was truncated, comes as text. */
function resultText(result: FunctionCall["result"]): string {
  const { text, truncated, ...others } = result;
  if (typeof text !== "string" || Object.keys(others).length > 0) return asText(result);
  return `${/^\s*[{[]/.test(text) ? indented(text) : text}${truncated === true ? "…" : ""}`;
}

/** The functions that were called, each with its arguments and result when opened. */
export function FunctionCalls({ calls }: { calls: readonly unknown[] | undefined }) {
  if (!calls?.length) return null;
  return (
    <>
      {(calls as FunctionCall[]).map(({ name, arguments: given, result }, index) => (
        <details key={index} class="calls-function">
          <summary><Icon name="tools" />{name}</summary>
          <h4>Arguments</h4>
          <pre tabIndex={0} role="group" aria-label="Arguments">{asText(given)}</pre>
          <h4>Result</h4>
          <pre tabIndex={0} role="group" aria-label="Result">{resultText(result)}</pre>
        </details>
      ))}
    </>
  );
}
