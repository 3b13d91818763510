// What a model can look at beside text, as a setting says it. Part of settings.ts.
import { list, problem, type Parse } from "./values.ts";

const SIGHTS = ["image", "pdf"] as const;
export type Sight = (typeof SIGHTS)[number];

export const sights: Parse<Sight[]> = (value) => {
  const named = list(value);
  const known = SIGHTS.filter((sight) => named.includes(sight));
  return known.length === named.length
    ? known
    : problem("must be image, pdf, or both separated by a comma");
};
