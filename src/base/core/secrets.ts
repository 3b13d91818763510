// Secrets at rest: AES-256-GCM under one key, bound to the place they are stored at, so that a
// value copied from one row to another does not open. Also finds or makes that key.
import { createCipheriv, createDecipheriv, createHmac, hash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { addFile, makeFolder } from "./disk.ts";
import type { System } from "./system.ts";

export interface SecretBox {
  /** `place`: table, row and column, e.g. `tools:7:headers`. */
  seal(plain: string, place: string): string;
  /** Throws when the text was not sealed under this key at this place. */
  open(sealed: string, place: string): string;
  /** Null where `open` throws. */
  tryOpen(sealed: string, place: string): string | null;
}

/** Sent in place of a secret that the reader may not see. */
export const MASK = "***";

const VERSION = "v1";
const SECRET_FILE = "secret";

/**
 * The operator's secret, else the one in the data folder; null when there is none yet. Throws when
 * its file is empty: under a new secret, what is sealed would seem lost.
 */
export function findSecret(configured: string | null, dataDir: string): string | null {
  if (configured !== null) return configured;
  const path = join(dataDir, SECRET_FILE);
  if (!existsSync(path)) return null;
  const secret = readFileSync(path, "utf8").trim();
  if (secret !== "") return secret;
  throw new Error(`${path} is empty: restore it from a backup, or delete it if nothing was`
    + " encrypted with it yet: the next start creates a new one");
}

/** As `findSecret`, else a new one kept in the data folder. */
export function loadSecret(configured: string | null, dataDir: string, system: System): string {
  const known = findSecret(configured, dataDir);
  if (known !== null) return known;
  makeFolder(dataDir);
  // Another process may be creating one too: both use the first that exists.
  const made = system.randomBytes(32).toString("base64url");
  addFile(join(dataDir, SECRET_FILE), `${made}\n`, system);
  return loadSecret(configured, dataDir, system);
}

/** A mark that identifies a secret without revealing it; a different one for each purpose. */
export const secretMark = (secret: string, purpose: "parley backup" | "parley database"): string =>
  createHmac("sha256", secret).update(purpose).digest("base64url");

export function createSecretBox(secret: string, system: System): SecretBox {
  const key = hash("sha256", secret, "buffer");
  const box: SecretBox = {
    seal: (plain, place) => {
      const nonce = system.randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(place));
      const sealed = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
      return [VERSION, nonce, cipher.getAuthTag(), sealed]
        .map((part) => (typeof part === "string" ? part : part.toString("base64url")))
        .join(".");
    },
    open: (sealed, place) => {
      const [version, nonce, tag, text] = sealed.split(".");
      if (version !== VERSION || !nonce || !tag || text === undefined) {
        throw new Error("not a sealed secret");
      }
      const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(nonce, "base64url"))
        .setAAD(Buffer.from(place))
        .setAuthTag(Buffer.from(tag, "base64url"));
      const plain = Buffer.concat([decipher.update(text, "base64url"), decipher.final()]);
      return plain.toString("utf8");
    },
    tryOpen: (sealed, place) => {
      try {
        return box.open(sealed, place);
      } catch {
        return null;
      }
    },
  };
  return box;
}
