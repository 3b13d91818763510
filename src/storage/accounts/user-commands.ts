// The commands for members: joining, roles, invitations, sessions. A manager's right is checked
// inside the transaction, so that nobody acts on a role they no longer have.
import type { By } from "#features/accounts/audit.ts";
import { mayManage, type Role } from "#features/accounts/people/roles.ts";
import {
  userAuthorId, type ChangeOutcome, type InviteOutcome, type Join, type JoinOutcome,
  type Manager, type NewSession, type User, type UserStore,
} from "#features/accounts/people/users.ts";
import type { Instant } from "#core/system.ts";
import { createNoteAudit } from "./audit-log.ts";
import type { Sql } from "#storage/sql.ts";
import {
  byUser, INVITATION, invitationFromRow, USER, userFromRow, type InvitationRow, type UserRow,
} from "./users.ts";

/** Sessions open at a time for one member; beyond that the oldest ends. */
const SESSIONS_MAX = 20;

type ArgsOf<Name extends keyof UserStore> = Parameters<UserStore[Name]>[0];

interface Deed {
  accountId: number;
  by: By;
  now: Instant;
}

export function userCommands(sql: Sql) {
  const members = createMembers(sql);
  return {
    ...changeCommands(sql, members), ...sessionCommands(sql, members),
    ...invitationCommands(sql, members),
  };
}

/** The statements and checks that all of these commands share. */
function createMembers(sql: Sql) {
  const find = sql.prepare<object, UserRow>(`
    SELECT ${USER} FROM users
    WHERE id = @userId AND account_id = @accountId AND removed_at IS NULL`);
  const owners = sql.prepare<object, { owners: number }>(`
    SELECT count(*) AS owners FROM users
    WHERE account_id = @accountId AND role = 'owner' AND removed_at IS NULL`);
  const insert = sql.prepare<object, UserRow>(`
    INSERT INTO users (account_id, email, name, role, password_hash, issuer, subject, created_at)
    VALUES (@accountId, @email, @name, @role, @passwordHash, @issuer, @subject, @now)
    ON CONFLICT DO NOTHING RETURNING ${USER}`);
  const endSessions = sql.prepare(
    "DELETE FROM user_sessions WHERE user_id = @userId AND account_id = @accountId");
  const noteAudit = createNoteAudit(sql);
  return {
    find: async (accountId: number, userId: number) => find.get({ accountId, userId }),
    insert: async (args: Omit<Join, "invitationId"> & { email: string; role: Role }) =>
      insert.get({
        ...args, issuer: args.subject?.issuer ?? null, subject: args.subject?.subject ?? null,
      }),
    endSessions: async (accountId: number, userId: number): Promise<void> => {
      await endSessions.run({ accountId, userId });
    },
    isLastOwner: async ({ accountId, role }: Pick<User, "accountId" | "role">): Promise<boolean> =>
      role === "owner" && (await owners.one({ accountId })).owners <= 1,
    /** Judged by the manager's role at this moment. */
    mayManage: async (
      accountId: number, { userId, role }: Manager, ...roles: Role[]
    ): Promise<boolean> => {
      const current = userId === null ? role : (await find.get({ accountId, userId }))?.role;
      return current !== undefined && mayManage(current, ...roles);
    },
    note: async (
      { accountId, by, now }: Deed, action: string,
      object: { type: string; id: number } | null, details: Record<string, unknown> = {},
    ): Promise<void> => {
      await noteAudit({
        accountId, now,
        note: { ...by, action, details, object: object && { ...object, id: String(object.id) } },
      });
    },
  };
}

type Members = ReturnType<typeof createMembers>;

const member = (id: number) => ({ type: "member", id });

function changeCommands(sql: Sql, members: Members) {
  const update = sql.prepare<object, UserRow>(`
    UPDATE users SET role = @role, name = @name WHERE id = @userId AND account_id = @accountId
    RETURNING ${USER}`);
  const remove = sql.prepare(`
    UPDATE users SET removed_at = @now, password_hash = NULL
    WHERE id = @userId AND account_id = @accountId`);
  // Password links were made for the old role; so were the links that the member handed out.
  const forget = sql.prepare(`
    UPDATE invitations SET closed_at = @now
    WHERE account_id = @accountId AND closed_at IS NULL
      AND (user_id = @userId OR invited_by = @authorId)`);
  return {
    "users.add": async (args: ArgsOf<"add">): Promise<User | null> => {
      const row = await members.insert(args);
      if (!row) return null;
      await members.note({ ...args, by: byUser(row, args.address) }, "member.join",
        member(row.id), { email: row.email, role: row.role });
      return userFromRow(row);
    },
    "users.change": async (args: ArgsOf<"change">): Promise<ChangeOutcome> => {
      const { accountId, userId, manager } = args;
      const row = await members.find(accountId, userId);
      if (!row) return { kind: "not_found" };
      const role = args.role ?? row.role;
      const name = args.name ?? row.name;
      if (!await members.mayManage(accountId, manager, row.role, role)) return { kind: "forbidden" };
      if (role !== "owner" && await members.isLastOwner({ accountId, role: row.role })) {
        return { kind: "last_owner" };
      }
      const user = userFromRow(await update.one({ accountId, userId, role, name }));
      const before = { role: row.role, name: row.name };
      if (role !== row.role) await forget.run({ ...args, authorId: userAuthorId(userId) });
      await members.note(args, "member.update", member(userId), { before, after: { role, name } });
      return { kind: "changed", user };
    },
    "users.remove": async (args: ArgsOf<"remove">): Promise<ChangeOutcome> => {
      const { accountId, userId, manager, now } = args;
      const row = await members.find(accountId, userId);
      if (!row) return { kind: "not_found" };
      if (!await members.mayManage(accountId, manager, row.role)) return { kind: "forbidden" };
      const user = userFromRow(row);
      if (await members.isLastOwner(user)) return { kind: "last_owner" };
      await remove.run({ accountId, userId, now });
      await forget.run({ accountId, userId, authorId: userAuthorId(userId), now });
      await members.endSessions(accountId, userId);
      await members.note(args, "member.remove", member(userId), {
        before: { email: row.email, name: row.name, role: row.role },
      });
      return { kind: "changed", user };
    },
  };
}

/** Ends the sessions opened with the member's old password, and cancels open password links. */
function createSetPassword(sql: Sql, members: Members) {
  const setPassword = sql.prepare(`
    UPDATE users SET password_hash = @passwordHash
    WHERE id = @userId AND account_id = @accountId`);
  const closeLinks = sql.prepare(`
    UPDATE invitations SET closed_at = @now
    WHERE account_id = @accountId AND user_id = @userId AND closed_at IS NULL`);
  return async (args: Omit<ArgsOf<"setPassword">, "provenBy">): Promise<void> => {
    await setPassword.run(args);
    await closeLinks.run(args);
    await members.endSessions(args.accountId, args.userId);
    await members.note(args, "password.change", member(args.userId));
  };
}

function sessionCommands(sql: Sql, members: Members) {
  const link = sql.prepare(`
    UPDATE users SET issuer = @issuer, subject = @subject
    WHERE id = @userId AND account_id = @accountId AND removed_at IS NULL
      AND (subject IS NULL OR (issuer = @issuer AND subject = @subject))`);
  const seen = sql.prepare(
    "UPDATE users SET seen_at = @now WHERE id = @userId AND account_id = @accountId");
  const insert = sql.prepare(`
    INSERT INTO user_sessions (account_id, user_id, token_hash, address, agent, created_at, expires_at)
    VALUES (@accountId, @userId, @tokenHash, @address, @agent, @now, @expiresAt)`);
  const endOld = sql.prepare(`
    DELETE FROM user_sessions WHERE user_id = @userId AND account_id = @accountId
      AND (expires_at <= @now OR id IN (
        SELECT id FROM user_sessions WHERE user_id = @userId ORDER BY id DESC
        LIMIT 1000 OFFSET (@kept + 0)))`);
  const end = sql.prepare(`
    DELETE FROM user_sessions
    WHERE id = @sessionId AND user_id = @userId AND account_id = @accountId`);
  const setPassword = createSetPassword(sql, members);
  return {
    "users.setPassword": async (args: ArgsOf<"setPassword">): Promise<boolean> => {
      const row = await members.find(args.accountId, args.userId);
      if (!row || row.password_hash !== args.provenBy) return false;
      await setPassword(args);
      return true;
    },
    "users.link": async (args: ArgsOf<"link">): Promise<boolean> => {
      if ((await link.run({ ...args, ...args.subject })).changes === 0) return false;
      await members.note(args, "member.link", member(args.userId), { issuer: args.subject.issuer });
      return true;
    },
    "users.openSession": async (args: NewSession): Promise<number | null> => {
      const row = await members.find(args.accountId, args.userId);
      if (!row || (args.provenBy !== null && row.password_hash !== args.provenBy)) return null;
      await endOld.run({ ...args, kept: SESSIONS_MAX - 1 });
      await seen.run(args);
      const id = await insert.insert(args);
      await members.note(args, "session.open", { type: "session", id });
      return id;
    },
    "users.closeSession": async (args: ArgsOf<"closeSession">): Promise<boolean> => {
      if ((await end.run(args)).changes === 0) return false;
      await members.note(args, "session.close", { type: "session", id: args.sessionId });
      return true;
    },
  };
}

function invitationCommands(sql: Sql, members: Members) {
  const taken = sql.prepare<object, UserRow>(`
    SELECT ${USER} FROM users
    WHERE email = @email AND account_id = @accountId AND removed_at IS NULL`);
  const replace = sql.prepare(`
    UPDATE invitations SET closed_at = @now
    WHERE account_id = @accountId AND email = @email AND closed_at IS NULL`);
  const insert = sql.prepare<object, InvitationRow>(`
    INSERT INTO invitations (account_id, user_id, email, role, token_hash, invited_by, inviter_name,
      created_at, expires_at)
    VALUES (@accountId, @userId, @email, @role, @tokenHash, @invitedBy, @inviterName, @now,
      @expiresAt)
    RETURNING ${INVITATION}`);
  const close = sql.prepare<object, InvitationRow>(`
    UPDATE invitations SET closed_at = @now
    WHERE id = @invitationId AND account_id = @accountId AND closed_at IS NULL
      AND expires_at > @now
    RETURNING ${INVITATION}`);
  const reopen = sql.prepare(
    "UPDATE invitations SET closed_at = NULL WHERE id = @id AND account_id = @accountId");
  const object = (id: number) => ({ type: "invitation", id });
  const setPassword = createSetPassword(sql, members);
  const useReset = async (args: Join, userId: number): Promise<JoinOutcome> => {
    const { accountId, passwordHash } = args;
    const row = await members.find(accountId, userId);
    if (!row || passwordHash === null) return { kind: "gone" };
    await setPassword({ ...args, userId, passwordHash, by: byUser(row, args.address) });
    return { kind: "joined", user: userFromRow(row) };
  };
  return {
    "users.invite": async (args: ArgsOf<"invite">): Promise<InviteOutcome> => {
      const { accountId, userId, email, role, manager, by } = args;
      const target = userId === null ? undefined : await members.find(accountId, userId);
      const roles = [role, ...target ? [target.role] : []];
      if (!await members.mayManage(accountId, manager, ...roles)) return { kind: "forbidden" };
      if (userId === null && await taken.get({ accountId, email })) return { kind: "is_member" };
      await replace.run(args);
      const { id, name } = by.actor;
      const row = await insert.one({ ...args, invitedBy: id, inviterName: name });
      await members.note(args, userId === null ? "invitation.create" : "password.reset",
        userId === null ? object(row.id) : member(userId), { email, role });
      return { kind: "invited", invitation: invitationFromRow(row) };
    },
    "users.closeInvitation": async (args: ArgsOf<"closeInvitation">): Promise<boolean> => {
      const row = await close.get(args);
      if (!row) return false;
      await members.note(args, "invitation.delete", object(row.id), { email: row.email });
      return true;
    },
    "users.join": async (args: Join): Promise<JoinOutcome> => {
      const invitation = await close.get(args);
      if (!invitation) return { kind: "gone" };
      if (invitation.user_id !== null) return useReset(args, invitation.user_id);
      const { account_id: accountId, email, role } = invitation;
      const row = await members.insert({ ...args, email, role });
      if (!row) {
        await reopen.run({ id: invitation.id, accountId });
        return { kind: "email_taken" };
      }
      await members.note({ ...args, by: byUser(row, args.address) }, "member.join",
        member(row.id), { email, role });
      return { kind: "joined", user: userFromRow(row) };
    },
  };
}
