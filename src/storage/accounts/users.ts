// Members, their sessions and invitations in the database: commands for the writer, reads for the
// main thread. Every deed is noted in the audit log inside its own transaction.
import type { By } from "#features/accounts/audit.ts";
import type { Role } from "#features/accounts/people/roles.ts";
import type {
  Invitation, StoredUser, User, UserSession, UserStore,
} from "#features/accounts/people/users.ts";
import type { passwordTryCommands } from "./password-tries.ts";
import { orNull, type Exists, type Reader } from "#storage/sql.ts";
import type { userCommands } from "./user-commands.ts";
import { writes, type Writer } from "#storage/writer.ts";

export interface UserRow {
  id: number;
  account_id: number;
  email: string;
  name: string;
  role: Role;
  password_hash: string | null;
  subject: string | null;
  seen_at: number | null;
  created_at: number;
}

export interface InvitationRow {
  id: number;
  account_id: number;
  user_id: number | null;
  email: string;
  role: Role;
  invited_by: string;
  inviter_name: string;
  created_at: number;
  expires_at: number;
}

interface SessionRow {
  id: number;
  address: string;
  agent: string;
  created_at: number;
  expires_at: number;
}

export const USER = `id, account_id, email, name, role, password_hash, subject, seen_at, created_at`;
export const INVITATION = `id, account_id, user_id, email, role, invited_by, inviter_name,
  created_at, expires_at`;

export const userFromRow = (row: UserRow): User => ({
  id: row.id,
  accountId: row.account_id,
  email: row.email,
  name: row.name,
  role: row.role,
  hasPassword: row.password_hash !== null,
  isLinked: row.subject !== null,
  seenAt: row.seen_at,
  createdAt: row.created_at,
});

export const invitationFromRow = (row: InvitationRow): Invitation => ({
  id: row.id,
  accountId: row.account_id,
  userId: row.user_id,
  email: row.email,
  role: row.role,
  invitedBy: { id: row.invited_by, name: row.inviter_name },
  createdAt: row.created_at,
  expiresAt: row.expires_at,
});

const sessionFromRow = (row: SessionRow): UserSession => ({
  id: row.id, address: row.address, agent: row.agent, createdAt: row.created_at,
  expiresAt: row.expires_at,
});

/** The audit log's author for a member. */
export const byUser = (
  { id, name }: { id: number; name: string }, address: string,
): By => ({ actor: { kind: "user", id: `user:${id}`, name }, address });

function createReads(reader: Reader) {
  const one = (where: string) => reader.prepare<object, UserRow>(
    `SELECT ${USER} FROM users WHERE ${where} AND removed_at IS NULL`);
  const OF_SESSION = `SELECT s.id AS session_id, ${USER.replaceAll(/\w+/g, "u.$&")}
    FROM user_sessions s JOIN users u ON u.id = s.user_id
    WHERE s.expires_at > @now AND u.removed_at IS NULL AND `;
  return {
    all: reader.prepare<object, UserRow>(`
      SELECT ${USER} FROM users WHERE account_id = @accountId AND removed_at IS NULL ORDER BY id`),
    any: reader.prepare<object, Exists>("SELECT 1 FROM users WHERE removed_at IS NULL LIMIT 1"),
    byId: one("id = @userId AND account_id = @accountId"),
    byEmail: one("email = @email"),
    bySubject: one("issuer = @issuer AND subject = @subject"),
    ofToken: reader.prepare<object, UserRow & { session_id: number }>(
      `${OF_SESSION} s.token_hash = @tokenHash`),
    ofSession: reader.prepare<object, UserRow & { session_id: number }>(
      `${OF_SESSION} s.id = @sessionId`),
    sessions: reader.prepare<object, SessionRow>(`
      SELECT id, address, agent, created_at, expires_at FROM user_sessions
      WHERE user_id = @userId AND expires_at > @now ORDER BY id DESC`),
    invitations: reader.prepare<object, InvitationRow>(`
      SELECT ${INVITATION} FROM invitations
      WHERE account_id = @accountId AND closed_at IS NULL AND expires_at > @now ORDER BY id`),
    invitation: reader.prepare<object, InvitationRow>(`
      SELECT ${INVITATION} FROM invitations
      WHERE token_hash = @tokenHash AND closed_at IS NULL AND expires_at > @now`),
    invitationFor: reader.prepare<object, InvitationRow>(`
      SELECT ${INVITATION} FROM invitations
      WHERE email = @email AND closed_at IS NULL AND user_id IS NULL AND expires_at > @now
      ORDER BY id LIMIT 1`),
  };
}

export function createUserStore(
  reader: Reader,
  writer: Writer<ReturnType<typeof passwordTryCommands> & ReturnType<typeof userCommands>>,
): UserStore {
  const reads = createReads(reader);
  return {
    list: async (accountId) => (await reads.all.all({ accountId })).map(userFromRow),
    find: async (accountId, userId) =>
      orNull(await reads.byId.get({ accountId, userId }), userFromRow),
    hasAny: async () => await reads.any.get({}) !== undefined,
    findByEmail: async (email): Promise<StoredUser | null> => {
      const row = await reads.byEmail.get({ email });
      return row ? { ...userFromRow(row), passwordHash: row.password_hash } : null;
    },
    findBySubject: async (subject) => orNull(await reads.bySubject.get(subject), userFromRow),
    findSession: async (tokenHash, now) => {
      const row = await reads.ofToken.get({ tokenHash, now });
      return row ? { sessionId: row.session_id, user: userFromRow(row) } : null;
    },
    sessionById: async (sessionId, now) =>
      orNull(await reads.ofSession.get({ sessionId, now }), userFromRow),
    sessions: async (userId, now) =>
      (await reads.sessions.all({ userId, now })).map(sessionFromRow),
    invitations: async (accountId, now) =>
      (await reads.invitations.all({ accountId, now })).map(invitationFromRow),
    findInvitation: async (tokenHash, now) =>
      orNull(await reads.invitation.get({ tokenHash, now }), invitationFromRow),
    invitationFor: async (email, now) =>
      orNull(await reads.invitationFor.get({ email, now }), invitationFromRow),
    ...writes(writer, "users", "add", "change", "remove", "setPassword", "link", "openSession",
      "closeSession", "invite", "closeInvitation", "join", "tryPassword"),
  };
}
