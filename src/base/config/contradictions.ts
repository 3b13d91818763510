// Settings that are right one by one and cannot be meant together, each in one sentence. Used by
// config.ts; sets of settings that are of no use one without the other are TOGETHER in settings.ts.
import type { FilesPlace } from "./files.ts";

/** Set where the operator has an account at a carrier that reports calls by webhooks. */
const HOSTED = [
  "PARLEY_TWILIO_ACCOUNT_SID", "PARLEY_TELNYX_API_KEY", "PARLEY_PLIVO_AUTH_ID",
  "PARLEY_VONAGE_APPLICATION_ID",
];

/** `values`: the value of every setting, defaults included. */
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
  const carrier = HOSTED.find(isSet);
  if (isSet("PARLEY_NATS_URL") && carrier !== undefined && !isSet("PARLEY_NODE_URL")) {
    found.push(`PARLEY_NATS_URL joins nodes and ${carrier} brings calls that one of them has: set`
      + " PARLEY_NODE_URL to the address under which carriers reach this node alone");
  }
  const domains = values.PARLEY_OIDC_DOMAINS as string[];
  if (isSet("PARLEY_OIDC_DEFAULT_ROLE") && domains.length === 0) {
    found.push("PARLEY_OIDC_DEFAULT_ROLE needs PARLEY_OIDC_DOMAINS, or anyone could sign in");
  }
  return found;
}
