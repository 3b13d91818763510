// The proxy that requests to others go through, from the variables that other programs read too.
// Used by outbound/connect.ts, and where a process that makes requests is started.
import { bareHost, isInside, isLoopback, parseNetworks } from "#core/networks.ts";

type Environment = Record<string, string | undefined>;

/** All variables that outbound requests depend on, that of the operator's own CA included. */
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

/** The lower-case name wins, as in curl. */
const read = (name: string, environment: Environment): string =>
  (environment[name.toLowerCase()] ?? environment[name] ?? "").trim();

/** `user:password`; null: none. */
export const credentialsOf = ({ username, password }: URL): string | null =>
  username === "" ? null : `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;

/** `proxy.example.com:3128` is as good as a URL; null: it is not an HTTP proxy. */
function parseProxy(text: string): URL | null {
  try {
    const url = new URL(text.includes("://") ? text : `http://${text}`);
    // Throws here when a % in the password is not written as %25.
    credentialsOf(url);
    return /^https?:$/.test(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

const VARIABLES = { "https:": "HTTPS_PROXY", "http:": "HTTP_PROXY" } as const;

/** These are only warnings: other programs on the machine may need another kind of proxy. */
export const proxyWarnings = (environment: Environment): string[] =>
  Object.values(VARIABLES).flatMap((name) => {
    const text = read(name, environment);
    return text === "" || parseProxy(text)
      ? []
      : [`${name} is ignored: it must be a URL such as http://proxy.example.com:3128`];
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

/** Null: the host is connected to directly, as this machine itself always is. */
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

/** The variables that name a proxy, and its address without the password. */
export const namedProxies = () =>
  Object.values(VARIABLES).flatMap((variable) => {
    const proxy = parseProxy(read(variable, process.env));
    return proxy ? [{ variable, origin: proxy.origin }] : [];
  });
