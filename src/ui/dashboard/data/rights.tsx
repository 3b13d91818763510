// What whoever is signed in may do, for the whole page: what is beyond it is not shown; a page's
// main button stays, cannot be pressed and says why. The server refuses it all the same.
import { createContext, type ComponentChildren } from "preact";
import { useContext } from "preact/hooks";

interface Rights {
  role: string;
  rights: readonly string[];
}

/** Null: not known yet, or nobody is signed in; nothing is held back. */
export const RightsContext = createContext<Rights | null>(null);

/** Whether a right is there, and where it is not, why not. */
export function useMay(): (right: string | undefined) => string | null {
  const known = useContext(RightsContext);
  return (right) =>
    right === undefined || !known || known.rights.includes(right)
      ? null
      : `Your role, ${known.role}, may not do this.`;
}

/** What is of no use without the right is not there without it. */
export function Needs({ right, children }: { right: string; children: ComponentChildren }) {
  return useMay()(right) === null ? <>{children}</> : null;
}
