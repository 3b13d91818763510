// Names and values that fill in `{{name}}` on the call.
import { Button, TextField } from "#ui/dashboard/kit/controls.tsx";

export interface Pair {
  name: string;
  value: string;
  /** The server has it: it can be emptied, not taken away. */
  isKept: boolean;
}

export const pairsOf = (variables: Record<string, string>): Pair[] =>
  Object.entries(variables).map(([name, value]) => ({ name, value, isKept: true }));

/** Fields without a name are no variables. */
export const variablesOf = (pairs: Pair[]): Record<string, string> =>
  Object.fromEntries(pairs.map(({ name, value }) => [name.trim(), value] as const)
    .filter(([name]) => name !== ""));

export function Variables({ pairs, onInput, error }: {
  pairs: Pair[]; error?: string | undefined; onInput(pairs: Pair[]): void;
}) {
  const change = (at: number, part: Partial<Pair>): void =>
    onInput(pairs.map((pair, index) => index === at ? { ...pair, ...part } : pair));
  return (
    <fieldset class="leads-variables">
      <legend>Variables</legend>
      <small>Filled in for {"{{name}}"} in the greeting and the prompt.</small>
      {pairs.map(({ name, value, isKept }, index) => (
        <div key={index} class={`leads-variable ${isKept ? "kept" : ""}`}>
          {!isKept && (
            <TextField
              label={`Name of variable ${index + 1}`} hidesLabel placeholder="name" value={name}
              maxLength={64} autoComplete="off" onInput={(text) => change(index, { name: text })}
            />
          )}
          <TextField
            label={isKept ? name : `Value of variable ${index + 1}`} hidesLabel={!isKept}
            placeholder="value" value={value} autoComplete="off"
            onInput={(text) => change(index, { value: text })}
          />
          {!isKept && (
            <Button
              kind="quiet" icon="close" label={`Remove variable ${index + 1}`}
              onClick={() => onInput(pairs.toSpliced(index, 1))}
            />
          )}
        </div>
      ))}
      {error && <small class="form-error">{error}</small>}
      <Button
        icon="add" onClick={() => onInput([...pairs, { name: "", value: "", isKept: false }])}
      >
        Add variable
      </Button>
    </fieldset>
  );
}
