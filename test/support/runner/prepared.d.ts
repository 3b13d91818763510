export const CACHE: string;
export const SOURCES_FILE: string;
export const PLACES_FILE: string;
export const PACKAGES: string;
/** The names of packages' modules, and the files they are bundled in. */
export const BUNDLED: Record<string, string>;
