// Sign-in at an OpenID provider: authorization code with PKCE, state and nonce, over openid-client,
// which is loaded when the first person signs in that way. Made in app/people.ts.
import type { Dispatcher } from "undici";
import { ProviderError } from "#core/faults.ts";
import { connecting } from "#outbound/connect.ts";
import { Agent, request } from "#outbound/undici.ts";
import type { AsksProvider } from "./port.ts";
import type * as OpenIdClient from "openid-client";

interface OpenIdOptions {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The provider's name on the button. */
  name: string;
}

/** How long the provider may take to answer one request. */
const ANSWER_S = 10;
const ANSWER_BYTES_MAX = 1024 * 1024;

interface Loaded {
  client: typeof OpenIdClient;
  config: OpenIdClient.Configuration;
}

/** In the form if the provider announces that, else in the header, which all must support. */
function secretSender(client: typeof OpenIdClient, secret: string): OpenIdClient.ClientAuth {
  const [inForm, asHeader] = [client.ClientSecretPost(secret), client.ClientSecretBasic(secret)];
  return (server, ...rest) => {
    const read = server.token_endpoint_auth_methods_supported ?? [];
    (read.includes("client_secret_post") ? inForm : asHeader)(server, ...rest);
  };
}

/** Node's own `fetch` ignores the proxy set in the environment. */
function createFetch(): OpenIdClient.CustomFetch {
  const dispatcher = new Agent({ connect: connecting(), maxResponseSize: ANSWER_BYTES_MAX });
  return async (address, { method, headers, body: sent, signal }) => {
    const { statusCode, headers: fields, body } = await request(address, {
      dispatcher, method: method as Dispatcher.HttpMethod, headers,
      body: sent instanceof URLSearchParams ? sent.toString() : null, signal: signal ?? null,
    });
    const text = await body.text();
    return new Response(text === "" ? null : text, {
      status: statusCode,
      headers: Object.entries(fields).map(([name, value]) => [name, String(value)]),
    });
  };
}

export function createOpenId(options: OpenIdOptions): AsksProvider {
  const { issuer, clientId, clientSecret, name } = options;
  let loading: Promise<Loaded> | null = null;
  const discover = async (): Promise<Loaded> => {
    const client = await import("openid-client");
    // The settings allow a provider without TLS only on this machine.
    const execute = issuer.startsWith("http:") ? [client.allowInsecureRequests] : [];
    const config = await client.discovery(
      new URL(issuer), clientId, undefined, secretSender(client, clientSecret),
      { timeout: ANSWER_S, execute, [client.customFetch]: createFetch() });
    return { client, config };
  };
  /** A provider that could not be reached is asked again the next time. */
  const load = (): Promise<Loaded> => (loading ??= discover().catch((error: unknown) => {
    loading = null;
    throw failure(error);
  }));
  return {
    name,
    begin: async (redirectUrl) => {
      const { client, config } = await load();
      const [verifier, state, nonce] =
        [client.randomPKCECodeVerifier(), client.randomState(), client.randomNonce()];
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUrl, scope: "openid email profile", state, nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      return { url: url.href, pending: { verifier, state, nonce } };
    },
    finish: async (address, { verifier, state, nonce }) => {
      const { client, config } = await load();
      try {
        const tokens = await client.authorizationCodeGrant(config, new URL(address), {
          pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (!claims) throw new Error("the provider sent no identity");
        // Providers may leave claims that were not requested by name out of the token.
        const isComplete = claims.email !== undefined && verdictOf(claims) !== undefined;
        const more = isComplete || !config.serverMetadata().userinfo_endpoint
          ? claims
          : await client.fetchUserInfo(config, tokens.access_token, claims.sub);
        return {
          issuer: claims.iss, subject: claims.sub,
          email: typeof more.email === "string" ? more.email : null,
          isVerified: isVerified(more),
          name: typeof more.name === "string" ? more.name : null,
        };
      } catch (error) {
        const isAnswer = error instanceof client.AuthorizationResponseError;
        if (isAnswer && error.error === "access_denied") return null;
        throw failure(error);
      }
    },
  };
}

/** Microsoft has a claim of its own in place of `email_verified`. */
const verdictOf = ({ email_verified: verified, xms_edov: ofMicrosoft }: OpenIdClient.JsonObject) =>
  verified ?? ofMicrosoft;

/** Microsoft's claim is sometimes a number or a string. */
const isVerified = (claims: OpenIdClient.JsonObject): boolean => claims.email_verified === undefined
  ? /^(?:true|1)$/.test(String(claims.xms_edov))
  : claims.email_verified === true;

const failure = (error: unknown): ProviderError =>
  new ProviderError("the OpenID provider refused the sign-in", { retryable: false, cause: error });
