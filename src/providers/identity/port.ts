// The port of identity providers, which vouch for people.

/** What only the browser that began a sign-in and this server know of it. */
export interface PendingSignIn {
  verifier: string;
  state: string;
  nonce: string;
}

/** Who the provider says it is. */
interface ProvenPerson {
  issuer: string;
  subject: string;
  /** Null: it does not say. */
  email: string | null;
  /** Whether the provider has verified that the address is the person's. */
  isVerified: boolean;
  name: string | null;
}

export interface AsksProvider {
  /** The name by which people know the provider. */
  name: string;
  /** Returns the URL for the browser, which comes back to `redirectUrl`. Throws ProviderError. */
  begin(redirectUrl: string): Promise<{ url: string; pending: PendingSignIn }>;
  /**
   * `address`: the whole URL that the browser came back with. Null: the person cancelled, or the
   * provider denied them the sign-in. Throws ProviderError for anything but the answer to this
   * sign-in.
   */
  finish(address: string, pending: PendingSignIn): Promise<ProvenPerson | null>;
}
