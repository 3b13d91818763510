// What a cell of a list says, and below it what is worth knowing about it.
import type { ComponentChildren } from "preact";
import "./two-lines.css";

export function TwoLines({ main, sub, isBad = false }: {
  main: ComponentChildren; sub: ComponentChildren; isBad?: boolean;
}) {
  return (
    <span class="two-lines">
      <span>{main}</span>
      {sub && <small class={isBad ? "bad" : undefined}>{sub}</small>}
    </span>
  );
}
