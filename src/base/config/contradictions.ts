// Settings that are right one by one and cannot be meant together, each in one sentence. Used by
// config.ts; sets of settings that are of no use one without the other are TOGETHER in settings.ts.
import type { FilesPlace } from "./files.ts";

/** `values`: every setting's, after its default. */
export function contradictions(values: Readonly<Record<string, unknown>>): string[] {
  const isSet = (name: string): boolean => (values[name] ?? null) !== null;
  const files = values.PARLEY_FILES_URL as FilesPlace | null;
  const found: string[] = [];
  if (files?.kind === "s3" && !isSet("PARLEY_S3_ACCESS_KEY")) {
    found.push("PARLEY_FILES_URL names a bucket, which needs PARLEY_S3_ACCESS_KEY and PARLEY_S3_SECRET_KEY");
  }
  if (isSet("PARLEY_NATS_URL") && files === null) {
    found.push("PARLEY_NATS_URL joins nodes, which need files all of them reach: set PARLEY_FILES_URL"
      + " to a folder they share (file:///mnt/shared) or to a bucket (s3+https://endpoint/bucket)");
  }
  return found;
}
