// Whoever vouches for people elsewhere.

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
  /** The provider has seen that the address is the person's. */
  isVerified: boolean;
  name: string | null;
}

export interface AsksProvider {
  /** What people know it by. */
  name: string;
  /** Where the browser goes; it comes back to `redirectUrl`. Throws ProviderError. */
  begin(redirectUrl: string): Promise<{ url: string; pending: PendingSignIn }>;
  /**
   * `address`: the whole one the browser came back with. Throws ProviderError for anything but the
   * answer to this sign-in.
   */
  finish(address: string, pending: PendingSignIn): Promise<ProvenPerson>;
}
