// The user commands of the `parley` program: members of an account, and links for new ones.
import { createMemoryBus } from "#events/bus.ts";
import { BY_OPERATOR } from "#features/accounts/audit.ts";
import { ROLES, type Role } from "#features/accounts/people/roles.ts";
import { createUsers, emailOf, isEmail, joinLink, type User, type Users } from "#features/accounts/people/users.ts";
import { tlsFilesOf } from "#config/config.ts";
import { listeningOrigin } from "#core/networks.ts";
import { createSystem, isoOrNull } from "#core/system.ts";
import type { Storage } from "#storage/storage.ts";
import {
  ACCOUNT, table, text, UsageError, withAccount, type Command, type Invocation,
} from "./command.ts";

const OPERATOR = { userId: null, role: "owner" } as const;

/** `onChange` does nothing: a server ends open streams at its own next check of the rights. */
const usersOf = ({ users: store }: Storage): Users => createUsers({
  store, bus: createMemoryBus(), system: createSystem(), onChange: () => undefined,
});

function readEmail([given = ""]: string[]): string {
  if (isEmail(given)) return emailOf(given);
  throw new UsageError(given === "" ? "EMAIL is required" : `${given} is not an e-mail address`);
}

function readRole(values: Invocation["values"]): Role {
  const given = text(values, "role");
  const role = ROLES.find((one) => one === given);
  if (!role) throw new UsageError(`--role must be one of ${ROLES.join(", ")}`);
  return role;
}

/** Runs `work` with the member of the account that the command line means. */
const withMember = <T>(
  invocation: Invocation, work: (user: User, users: Users) => Promise<T>,
): Promise<T> =>
  withAccount(invocation, async ({ id }, _accounts, storage) => {
    const users = usersOf(storage);
    const email = readEmail(invocation.positionals);
    const user = (await users.list(id)).find((one) => one.email === email);
    if (!user) throw new Error(`the account has no member ${email}`);
    return work(user, users);
  });

/** The command knows only its own settings, which may not be those the server was started with. */
function linkOf(config: Invocation["config"], token: string) {
  const origin = config.PARLEY_PUBLIC_URL
    ?? listeningOrigin(tlsFilesOf(config) !== null, config.PARLEY_HOST, config.PARLEY_PORT);
  if (config.PARLEY_PUBLIC_URL === null) {
    process.stderr.write(`parley: PARLEY_PUBLIC_URL is not set, so the link begins with ${origin}: `
      + "if people reach the server elsewhere, set it for this command too\n");
  }
  const link = joinLink(origin, token);
  return { value: { link }, text: link };
}

const invite: Command = {
  name: "user invite",
  takes: "EMAIL --role ROLE [--account ID]",
  summary: "Print an invitation link for a new member; it works once, for a week",
  words: 1,
  options: { ...ACCOUNT, role: { type: "string" } },
  run: (invocation) => {
    const [email, role] = [readEmail(invocation.positionals), readRole(invocation.values)];
    return withAccount(invocation, async ({ id: accountId }, _accounts, storage) => {
      const { token } = await usersOf(storage).invite(
        { accountId, email, role, manager: OPERATOR, by: BY_OPERATOR });
      return linkOf(invocation.config, token);
    });
  },
};

const list: Command = {
  name: "user list",
  takes: "[--account ID]",
  summary: "List the members of an account",
  options: ACCOUNT,
  run: (invocation) =>
    withAccount(invocation, async ({ id }, _accounts, storage) => {
      const rows = (await usersOf(storage).list(id)).map((user) => ({
        user_id: user.id, email: user.email, name: user.name, role: user.role,
        last_sign_in_at: isoOrNull(user.seenAt),
      }));
      const lines = rows.map((row) => [row.user_id, row.email, row.name, row.role]);
      return { value: rows, text: table([["user_id", "email", "name", "role"], ...lines]) };
    }),
};

const reset: Command = {
  name: "user password",
  takes: "EMAIL [--account ID]",
  summary: "Print a link for a member to set a new password; it works once, for a day",
  words: 1,
  options: ACCOUNT,
  run: (invocation) =>
    withMember(invocation, async ({ accountId, id: userId }, users) => {
      const { token } = await users.resetPassword(
        { accountId, userId, manager: OPERATOR, by: BY_OPERATOR });
      return linkOf(invocation.config, token);
    }),
};

const remove: Command = {
  name: "user remove",
  takes: "EMAIL [--account ID]",
  summary: "Remove a member; sessions end at once",
  words: 1,
  options: ACCOUNT,
  run: (invocation) =>
    withMember(invocation, async ({ accountId, id: userId, email }, users) => {
      await users.remove({ accountId, userId, manager: OPERATOR, by: BY_OPERATOR });
      return { value: { user_id: userId, removed: true }, text: `${email} is no longer a member` };
    }),
};

export const userCommands: Command[] = [invite, list, reset, remove];
