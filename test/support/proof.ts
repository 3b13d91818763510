// The long forms of tests: `npm run prove` runs each file that imports this with `PROOF=long`, and
// so do `npm run prove -- pages` all tests of pages. The suite does a part of the same.

export const IS_PROOF = process.env.PROOF === "long";

/** Why a test that has no short form is skipped; false: it runs. */
export const onlyProof: string | false = !IS_PROOF && "npm run prove runs it";
