// What the router hands to every page.

export type Params = Record<string, string | undefined>;

export interface PageProps {
  params: Params;
}
