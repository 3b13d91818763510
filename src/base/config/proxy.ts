// The proxy that requests to others go through, from the variables that other programs read too.
// Used by outbound/connect.ts, and by who starts a process that makes requests.
import { bareHost, isInside, isLoopback, parseNetworks } from "#core/networks.ts";

type Environment = Record<string, string | undefined>;

/** With a certificate authority of the operator's, all that requests to others depend on. */
const OUTBOUND_VARIABLES = [
  "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy",
  "NODE_EXTRA_CA_CERTS",
];

/** What a process needs of the environment to reach others as this one does. */
export const outboundEnvironment = (): Record<string, string> =>
  Object.fromEntries(OUTBOUND_VARIABLES.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }));

/** Small letters come first, as in curl. */
const read = (name: string, environment: Environment): string =>
  (environment[name.toLowerCase()] ?? environment[name] ?? "").trim();

/** `user:password`; null: none. */
export const credentialsOf = ({ username, password }: URL): string | null =>
  username === "" ? null : `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;

/** `proxy.example.com:3128` is as good as a URL; null: none of HTTP. */
function parseProxy(text: string): URL | null {
  try {
    const url = new URL(text.includes("://") ? text : `http://${text}`);
    // A % of a password that is not written as %25 throws here.
    credentialsOf(url);
    return /^https?:$/.test(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

const VARIABLES = { "https:": "HTTPS_PROXY", "http:": "HTTP_PROXY" } as const;

/** The machine's other programs may want another kind of proxy. */
export const proxyWarnings = (environment: Environment): string[] =>
  Object.values(VARIABLES).flatMap((name) => {
    const text = read(name, environment);
    return text === "" || parseProxy(text)
      ? []
      : [`${name} is not used: it is no URL of a proxy such as http://proxy.example.com:3128`];
  });

/** `example.com` and `.example.com` are the name and all below it; addresses may be networks. */
function isExcepted(host: string, port: string, exceptions: string[]): boolean {
  return exceptions.some((exception) => {
    const [, name = "", only] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(exception) ?? [];
    if (exception === "*") return true;
    if (isInside(host, parseNetworks([exception]))) return true;
    return (only === undefined || only === port) && (host === name || host.endsWith(`.${name}`));
  });
}

/** Null: the place is connected to directly, as this machine always is. */
export function proxyFor(
  { protocol, hostname, port }: { protocol: string; hostname: string; port: string },
  environment: Environment = process.env,
): URL | null {
  const proxy = parseProxy(read(VARIABLES[protocol === "https:" ? protocol : "http:"], environment));
  const host = bareHost(hostname).toLowerCase();
  if (!proxy || isLoopback(host)) return null;
  const exceptions = read("NO_PROXY", environment).toLowerCase().split(/[\s,]+/).filter(Boolean);
  const at = port || (protocol === "https:" ? "443" : "80");
  return isExcepted(host, at, exceptions) ? null : proxy;
}

/** The variables that name one, and the proxy's address without its password. */
export const namedProxies = (environment: Environment = process.env) =>
  Object.values(VARIABLES).flatMap((variable) => {
    const proxy = parseProxy(read(variable, environment));
    return proxy ? [{ variable, origin: proxy.origin }] : [];
  });
