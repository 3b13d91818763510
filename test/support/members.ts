// Members of a test server's accounts, each with a browser's cookie of their own.
import assert from "node:assert/strict";
import type { CallResult } from "./api.ts";
import type { TestServer } from "./server.ts";

export const PASSWORD = "a quite long password";

type Headers = Record<string, string>;

export const join = (
  server: TestServer, token: string, name: string, password = PASSWORD, headers: Headers = {},
): Promise<CallResult> =>
  server.call("POST", "/auth/join", { body: { token, name, password }, headers });

export const signIn = (
  server: TestServer, email: string, password = PASSWORD, headers: Headers = {},
): Promise<CallResult> =>
  server.call("POST", "/auth/login", { body: { email, password }, headers });

/** The cookie that a browser sends back. */
export const cookieOf = ({ headers }: CallResult): string =>
  (headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";

let count = 0;

/** A member who was invited with the key, has joined and signed in. */
export async function memberOf(server: TestServer, role: string, key: string) {
  count += 1;
  const name = `${role} ${count}`;
  const email = `${role}${count}.${server.port}@example.org`;
  const invited = await server.call("POST", "/user/invitations", { key, body: { email, role } });
  assert.equal(invited.status, 201, JSON.stringify(invited.body));
  const token = String(invited.body.link).split("/join/")[1] ?? "";
  const joined = await join(server, token, name);
  assert.equal(joined.status, 200, JSON.stringify(joined.body));
  const cookie = cookieOf(joined);
  return {
    id: joined.body.user.id as number, name, email, cookie,
    call: (
      method: string, path: string, body?: unknown, headers: Headers = {},
    ): Promise<CallResult> => server.call(method, path, {
      key: null, headers: { Cookie: cookie, ...headers }, ...body === undefined ? {} : { body },
    }),
  };
}
