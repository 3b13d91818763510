// RSA keys as operators give them. Read by the settings, used by whoever signs.
import { createPrivateKey, type KeyObject } from "node:crypto";

export function rsaKeyOf(pem: string): KeyObject | null {
  try {
    const key = createPrivateKey(pem);
    return key.asymmetricKeyType === "rsa" ? key : null;
  } catch {
    return null;
  }
}

/** What is wrong with the text of a key, to be put after the setting's name; null: nothing. */
export const rsaKeyProblem = (pem: string): string | null =>
  rsaKeyOf(pem) ? null : "must be an RSA private key in PEM, without a passphrase";
