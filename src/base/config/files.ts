// The settings about files that are not the database, and how PARLEY_FILES_URL is read. Part of
// settings.ts.
import { existsSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setting } from "./setting.ts";
import { problem, region, text, type Parse } from "./values.ts";

export type FilesPlace =
  | { kind: "folder"; root: string }
  /** `path`: the bucket and, where there is one, a folder in it. */
  | { kind: "s3"; endpoint: string; path: string };

const FORMS = "must be file:///folder, or s3+https://endpoint/bucket";
/** What a bucket may be called, and folders below it. */
const BUCKET_PATH = /^\/[a-z0-9][a-z0-9.-]{2,62}(?:\/[\w.-]+)*\/?$/;

/** Null where an escape in the URL is invalid, or hides a slash. */
function folderOf(url: string): string | null {
  try {
    return fileURLToPath(url);
  } catch {
    return null;
  }
}

const filesPlace: Parse<FilesPlace | null> = (value) => {
  if (!URL.canParse(value)) return problem(FORMS);
  const { protocol, host, pathname, username, search } = new URL(value);
  if (protocol === "file:" && host === "") {
    const root = folderOf(value);
    if (root === null) return problem(FORMS);
    // A folder that is made here would hide that a mount is missing.
    return existsSync(root) && statSync(root).isDirectory()
      ? { kind: "folder", root }
      : problem(`names a folder that does not exist: ${root}`);
  }
  const isS3 = protocol === "s3+https:" || protocol === "s3+http:";
  if (!isS3 || host === "" || username !== "" || search !== "" || !BUCKET_PATH.test(pathname)) {
    return problem(FORMS);
  }
  const endpoint = `${protocol.slice("s3+".length)}//${host}`;
  return { kind: "s3", endpoint, path: pathname.replace(/^\/|\/$/g, "") };
};

export const FILE_SETTINGS = {
  PARLEY_FILES_URL: setting<FilesPlace | null>({
    default: null,
    description: "Where to store recordings and documents so that every node reaches them: file:///mnt/shared, or s3+https://endpoint/bucket; absent: in the data folder",
    parse: filesPlace,
  }),
  PARLEY_S3_ACCESS_KEY: setting<string | null>({
    default: null, description: "Access key of the bucket of PARLEY_FILES_URL", parse: text, secret: true,
  }),
  PARLEY_S3_SECRET_KEY: setting<string | null>({
    default: null, description: "Secret key of the bucket of PARLEY_FILES_URL", parse: text, secret: true,
  }),
  PARLEY_S3_REGION: setting({
    default: "us-east-1",
    description: "Region of the bucket of PARLEY_FILES_URL, as its provider names it", parse: region as Parse<string>,
  }),
};
