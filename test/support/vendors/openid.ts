// A real OpenID provider (oidc-provider) on this machine, whose users sign in without being asked,
// and browsers with only what its redirects need: cookies by place, no scripts.
import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import Provider, { type Configuration } from "oidc-provider";
import { listenLocally } from "#support/local-server.ts";

export const SIGN_IN_ROUTES = { begin: "/api/auth/oidc", callback: "/api/auth/oidc/callback" };

interface Person {
  sub: string;
  email: string;
  email_verified?: unknown;
  /** Microsoft's own claim, in place of `email_verified`. */
  xms_edov?: unknown;
  name: string;
}

interface Answer {
  status: number;
  url: string;
  // Tests read bodies untyped; each asserts what it relies on.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
}

export interface Browser {
  /** Follows redirects, but not to a path that begins with `until`: the last address asked for. */
  go(url: string, until?: string): Promise<Answer>;
  ask(url: string): Promise<Answer>;
}

const REDIRECTS_MAX = 20;

function createBrowser(): Browser {
  const jars = new Map<string, Map<string, string>>();
  const ask = async (url: string): Promise<{ answer: Answer; location: string | null }> => {
    const { host, href } = new URL(url);
    const jar = jars.get(host) ?? new Map<string, string>();
    jars.set(host, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const sent = request(href, { headers: { ...cookie === "" ? {} : { Cookie: cookie } } }).end();
    const [response] = await once(sent, "response") as [IncomingMessage];
    for (const one of response.headers["set-cookie"] ?? []) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? [];
      if (value === "" || /max-age=0|expires=thu, 01 jan 1970/i.test(one)) jar.delete(name);
      else jar.set(name, value);
    }
    let text = "";
    for await (const chunk of response.setEncoding("utf8")) text += chunk as string;
    const isJson = response.headers["content-type"]?.includes("json") ?? false;
    const body = isJson ? JSON.parse(text) : text;
    const answer = { status: response.statusCode ?? 0, url, body };
    const { location } = response.headers;
    return { answer, location: location === undefined ? null : new URL(location, url).href };
  };
  return {
    ask: async (url) => (await ask(url)).answer,
    go: async (begin, until) => {
      let url = begin;
      for (let count = 0; count < REDIRECTS_MAX; count += 1) {
        const { answer, location } = await ask(url);
        if (location === null) return answer;
        url = location;
        const isThere = until !== undefined && new URL(url).pathname.startsWith(until);
        if (isThere || /\/(#|$)/.test(url.slice("http://".length))) return { ...answer, url };
      }
      throw new Error("too many redirects");
    },
  };
}

type SecretBy = "client_secret_post" | "client_secret_basic";

/** `secretBy`: the only method for the client's secret that it announces and accepts. */
export async function startOpenIdProvider(secretBy: SecretBy = "client_secret_post") {
  const server = createServer();
  const { url: issuer, close } = await listenLocally(server);
  const [clientId, clientSecret] = ["parley", "a-secret-of-the-client-and-the-provider"];
  let handle: ReturnType<Provider["callback"]> | null = null;
  const started = {
    issuer, clientId, clientSecret,
    /** The person who signs in next. */
    person: { sub: "nobody", email: "nobody@example.org", email_verified: true, name: "" } as Person,
    /** Claims in the ID token; the rest is in userinfo alone. */
    inToken: [] as (keyof Person)[],
    browser: createBrowser,
    /** Sets the address to which the provider may redirect back. */
    allow: (redirectUri: string): void => {
      const client = { clientId, clientSecret, redirectUri, secretBy };
      handle = providerOf(issuer, client, started);
    },
    close,
  };
  server.on("request", (incoming, answer) => void handle?.(incoming, answer));
  return started;
}

function providerOf(
  issuer: string,
  { clientId, clientSecret, redirectUri, secretBy }:
  Record<"clientId" | "clientSecret" | "redirectUri", string> & { secretBy: SecretBy },
  now: { person: Person; inToken: (keyof Person)[] },
) {
  const people = new Map<string, Person>();
  const configuration: Configuration = {
    clients: [{
      client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUri],
      token_endpoint_auth_method: secretBy,
    }],
    clientAuthMethods: [secretBy],
    claims: { openid: ["sub"], email: ["email", "email_verified", "xms_edov"], profile: ["name"] },
    conformIdTokenClaims: false,
    cookies: { keys: ["a key of this test"] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: (use) => {
        const all = Object.entries(people.get(sub) ?? {});
        const isIn = (name: string) => (now.inToken as string[]).includes(name);
        const given = use === "userinfo" ? all : all.filter(([name]) => isIn(name));
        return { ...Object.fromEntries(given), sub };
      },
    }),
  };
  const provider = new Provider(issuer, configuration);
  // What a form of the provider would ask is answered at once.
  provider.use(async (context, next) => {
    if (!context.path.startsWith("/interaction/")) return next();
    const { prompt, params, grantId } = await provider.interactionDetails(context.req, context.res);
    if (prompt.name === "login") {
      const { person } = now;
      people.set(person.sub, person);
      return provider.interactionFinished(
        context.req, context.res, { login: { accountId: person.sub } },
        { mergeWithLastSubmission: false });
    }
    const { session } = await provider.interactionDetails(context.req, context.res);
    const grant = (grantId ? await provider.Grant.find(grantId) : undefined)
      ?? new provider.Grant({ accountId: session?.accountId ?? "", clientId: String(params.client_id) });
    grant.addOIDCScope(String(params.scope));
    return provider.interactionFinished(
      context.req, context.res, { consent: { grantId: await grant.save() } },
      { mergeWithLastSubmission: true });
  });
  return provider.callback();
}
