// The wire of members and invitations, and of one's own password and sessions.
import { Type } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros, isoOrNull, type System } from "#core/system.ts";
import { dataOf, IdOf, listOf, MessageSchema, Moment, savedOf } from "#http/answers.ts";
import { json, type HttpRequest } from "#http/exchange.ts";
import { keyRoute, type Caller, type Route } from "#http/route.ts";
import type { By } from "#features/accounts/audit.ts";
import { EMAIL, fromOf, NAME, NEW_PASSWORD, PASSWORD, SIGNED_IN, signedIn } from "./auth-routes.ts";
import { ROLES, type Role } from "./roles.ts";
import type { Member, SignIn } from "./sign-in.ts";
import {
  joinLink, userAuthorId, type Invitation, type Manager, type User, type Users, type UserSession,
} from "./users.ts";

interface MemberRouteOptions {
  users: Users;
  signIn: SignIn;
  origins: { of(http: HttpRequest): string; isSecure(http: HttpRequest): boolean };
  system: System;
  byOf(caller: Caller, http: HttpRequest): Promise<By>;
}

const RoleField = OneOf(ROLES, about(
  "What one may do: viewers read; operators answer visitors and callers, too; builders change "
  + "assistants and what belongs to them, too; admins everything but owners; owners everything.",
  "operator"));
const MEMBER = Type.Object({
  id: Type.Integer(about("The member's number.", 5)),
  author_id: Type.String(about("The member as an author, and to assign conversations to.", "user:5")),
  name: NAME, email: EMAIL, role: RoleField,
  has_password: Type.Boolean(about("Whether the member signs in with a password.")),
  is_linked: Type.Boolean(about("Whether the member signs in at the OpenID provider.")),
  is_you: Type.Boolean(about("Whether it is the caller.")),
  last_sign_in_at: Nullable(Moment("When the member signed in last, in UTC; null: never.")),
  created_at: Moment("Since when, in UTC."),
}, named("Member", "A person of the account."));
const INVITATION = Type.Object({
  id: Type.Integer(about("The invitation's number.", 3)),
  email: EMAIL, role: RoleField,
  is_reset: Type.Boolean(about("Whether it gives a member a new password, and makes no new one.")),
  invited_by: Type.String(about("Who made it.", "Ben")),
  created_at: Moment("When it was made, in UTC."),
  expires_at: Moment("Until when its link works, in UTC."),
}, named("Invitation", "A link that makes a member, once."));
const LINK = Type.String(about(
  "To be handed to whoever it is for; shown here and never again.",
  "https://talk.example.com/#/join/q8Zr1x0V5mB2nK7c"));
const SESSION = Type.Object({
  id: Type.Integer(about("The session's number.", 9)),
  address: Type.String(about("Where it was opened from.", "192.0.2.1")),
  agent: Type.String(about("With which browser.", "Firefox")),
  is_this: Type.Boolean(about("Whether the request came with it.")),
  created_at: Moment("When it was opened, in UTC."),
  expires_at: Moment("When it ends by itself, in UTC."),
}, named("UserSession", "A browser in which the caller is signed in."));

const COMMON = { tag: "Members", errorShape: "message" } as const;

const memberItem = (user: User, caller: Caller) => ({
  id: user.id, author_id: userAuthorId(user.id), name: user.name, email: user.email,
  role: user.role, has_password: user.hasPassword, is_linked: user.isLinked,
  is_you: user.id === caller.member?.userId,
  last_sign_in_at: isoOrNull(user.seenAt),
  created_at: isoMicros(user.createdAt),
});
const invitationItem = (invitation: Invitation) => ({
  id: invitation.id, email: invitation.email, role: invitation.role,
  is_reset: invitation.userId !== null, invited_by: invitation.invitedBy.name,
  created_at: isoMicros(invitation.createdAt), expires_at: isoMicros(invitation.expiresAt),
});
const sessionItem = (session: UserSession, thisId: number) => ({
  id: session.id, address: session.address, agent: session.agent, is_this: session.id === thisId,
  created_at: isoMicros(session.createdAt), expires_at: isoMicros(session.expiresAt),
});

const managerOf = ({ role, member }: Caller): Manager =>
  ({ userId: member?.userId ?? null, role: role as Role });

export function memberRoutes(options: MemberRouteOptions): Route[] {
  return [
    ...listRoutes(options), ...changeRoutes(options), ...invitationRoutes(options),
    ...ownRoutes(options),
  ];
}

function listRoutes({ users }: MemberRouteOptions): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/members",
      summary: "List members",
      responses: { 200: { description: "All of them", schema: dataOf(listOf(MEMBER, "All.")) } },
      handle: async ({ caller }) => json(200, {
        data: (await users.list(caller.accountId)).map((user) => memberItem(user, caller)),
      }),
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/invitations",
      summary: "List open invitations",
      responses: {
        200: { description: "All of them", schema: dataOf(listOf(INVITATION, "All, links aside.")) },
      },
      handle: async ({ caller }) => json(200, {
        data: (await users.invitations(caller.accountId)).map(invitationItem),
      }),
    }),
  ];
}

const FORBIDDEN = { description: "It takes an owner, or a right the caller's role has not" };
const LAST = { description: "It is the last owner" };

function changeRoutes(options: MemberRouteOptions): Route[] {
  const { users, origins, byOf } = options;
  const one = {
    ...COMMON, path: "/user/members/{id}", notFound: "Member not found.",
    params: { id: IdOf("member", "GET /user/members") },
  };
  return [
    keyRoute({
      ...one,
      method: "PATCH",
      summary: "Change a member's role or name",
      description: "Applies to the member's next request. The last owner stays one.",
      body: Type.Object({ role: Type.Optional(RoleField), name: Type.Optional(NAME) }),
      responses: {
        200: { description: "The member", schema: savedOf(MEMBER) }, 403: FORBIDDEN, 409: LAST,
      },
      handle: async ({ caller, id, body, http }) => {
        const user = await users.change({
          accountId: caller.accountId, userId: id, manager: managerOf(caller),
          by: await byOf(caller, http), role: body.role ?? null, name: body.name?.trim() ?? null,
        });
        return json(200, { message: "Member updated.", data: memberItem(user, caller) });
      },
    }),
    keyRoute({
      ...one,
      method: "DELETE",
      summary: "Remove a member",
      description: "Sessions and open streams end at once, as do invitations the member made. API "
        + "keys the member made are the account's, and stay.",
      responses: {
        200: { description: "Removed", schema: MessageSchema }, 403: FORBIDDEN, 409: LAST,
      },
      handle: async ({ caller, id, http }) => {
        await users.remove({
          accountId: caller.accountId, userId: id, manager: managerOf(caller),
          by: await byOf(caller, http),
        });
        return json(200, { message: "Member removed." });
      },
    }),
    keyRoute({
      ...one,
      method: "POST",
      path: "/user/members/{id}/password-link",
      summary: "Make a link with which a member sets a new password",
      description: "Works once, within a day.",
      responses: {
        201: { description: "The link", schema: Type.Object({ link: LINK }) }, 403: FORBIDDEN,
      },
      handle: async ({ caller, id, http }) => {
        const { token } = await users.resetPassword({
          accountId: caller.accountId, userId: id, manager: managerOf(caller),
          by: await byOf(caller, http),
        });
        return json(201, { link: joinLink(origins.of(http), token) });
      },
    }),
  ];
}

function invitationRoutes({ users, origins, byOf }: MemberRouteOptions): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/invitations",
      summary: "Invite somebody",
      description: "The link works once, within seven days. One that was open for the same address "
        + "works no more.",
      body: Type.Object({ email: EMAIL, role: RoleField }),
      responses: {
        201: {
          description: "The invitation and its link",
          schema: Type.Object({
            message: MessageSchema.properties.message, data: INVITATION, link: LINK,
          }),
        },
        403: FORBIDDEN,
      },
      handle: async ({ caller, body, http }) => {
        const { invitation, token } = await users.invite({
          ...body, accountId: caller.accountId, manager: managerOf(caller),
          by: await byOf(caller, http),
        });
        return json(201, {
          message: "Invitation created.", data: invitationItem(invitation),
          link: joinLink(origins.of(http), token),
        });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "DELETE",
      path: "/user/invitations/{id}",
      summary: "Take an invitation back",
      notFound: "Invitation not found.",
      params: { id: IdOf("invitation", "GET /user/invitations") },
      responses: { 200: { description: "Its link works no more", schema: MessageSchema } },
      handle: async ({ caller, id, http }) => {
        const by = await byOf(caller, http);
        await users.closeInvitation({ accountId: caller.accountId, invitationId: id, by });
        return json(200, { message: "Invitation deleted." });
      },
    }),
  ];
}

function ownRoutes({ users, signIn, origins, system, byOf }: MemberRouteOptions): Route[] {
  const memberOf = async ({ accountId, member }: Caller): Promise<Member> => {
    const user = member ? await users.find(accountId, member.userId) : null;
    if (!member || !user) throw new Fault(403, "An API key has no password and no sessions.");
    return { user, sessionId: member.sessionId };
  };
  return [
    keyRoute({
      ...COMMON,
      method: "PUT",
      path: "/user/password",
      summary: "Change your password",
      description: "Every session of yours ends, and links for a new password work no more; this "
        + "browser gets a new session.",
      body: Type.Object({ current_password: Type.Optional(PASSWORD), password: NEW_PASSWORD }),
      responses: { 200: { description: "Changed", schema: SIGNED_IN } },
      handle: async ({ caller, body, http }) => {
        const session = await signIn.changePassword(await memberOf(caller), {
          current: body.current_password ?? "", password: body.password,
          from: fromOf(http), by: await byOf(caller, http),
        });
        return signedIn(session, origins.isSecure(http), system.now());
      },
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/sessions",
      summary: "List the browsers you are signed in with",
      responses: { 200: { description: "All of them", schema: dataOf(listOf(SESSION, "Newest first.")) } },
      handle: async ({ caller }) => {
        // An API key has no sessions.
        const { userId, sessionId } = caller.member ?? { userId: 0, sessionId: 0 };
        const sessions = await signIn.sessions(userId);
        return json(200, { data: sessions.map((session) => sessionItem(session, sessionId)) });
      },
    }),
    keyRoute({
      ...COMMON,
      method: "DELETE",
      path: "/user/sessions/{id}",
      summary: "Sign a browser of yours out",
      notFound: "Session not found.",
      params: { id: IdOf("session", "GET /user/sessions") },
      responses: { 200: { description: "It is signed out", schema: MessageSchema } },
      handle: async ({ caller, id, http }) => {
        const isClosed = await signIn.closeSession(
          await memberOf(caller), id, await byOf(caller, http));
        if (!isClosed) throw new Fault(404, "Session not found.");
        return json(200, { message: "Session ended." });
      },
    }),
  ];
}
