// A cell of a list, and below its text a second line of detail.
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
