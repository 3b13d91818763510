// The rights of the person who is signed in, for the whole page: what they may not do is hidden. A
// page's main button stays, disabled, and says why. The server refuses it all the same.
import { createContext, type ComponentChildren } from "preact";
import { useContext } from "preact/hooks";

interface Rights {
  role: string;
  rights: readonly string[];
}

/** Null: not known yet, or nobody is signed in; then nothing is hidden. */
export const RightsContext = createContext<Rights | null>(null);

/** Null where the person has the right; else the reason why not. */
export function useMay(): (right: string | undefined) => string | null {
  const known = useContext(RightsContext);
  return (right) =>
    right === undefined || !known || known.rights.includes(right)
      ? null
      : `Your role, ${known.role}, may not do this.`;
}

/** Hides what is of no use without the right. */
export function Needs({ right, children }: { right: string; children: ComponentChildren }) {
  return useMay()(right) === null ? <>{children}</> : null;
}
