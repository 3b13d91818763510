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
  "The role. viewer: read. operator: also answer visitors and callers. builder: also change "
  + "assistants and what belongs to them. admin: everything except managing owners. owner: "
  + "everything.",
  "operator"));
const MEMBER = Type.Object({
  id: Type.Integer(about("The member's number.", 5)),
  author_id: Type.String(about("The member's author id, also used to assign conversations.",
    "user:5")),
  name: NAME, email: EMAIL, role: RoleField,
  has_password: Type.Boolean(about("Whether the member signs in with a password.")),
  is_linked: Type.Boolean(about("Whether the member signs in at the OpenID provider.")),
  is_you: Type.Boolean(about("Whether it is you.")),
  last_sign_in_at: Nullable(Moment("When the member signed in last, in UTC; null: never.")),
  created_at: Moment("Since when, in UTC."),
}, named("Member", "A person of the account."));
const INVITATION = Type.Object({
  id: Type.Integer(about("The invitation's number.", 3)),
  email: EMAIL, role: RoleField,
  is_reset: Type.Boolean(about("True if the link sets a new password for an existing member "
    + "instead of creating one.")),
  invited_by: Type.String(about("Who created it.", "Ben")),
  created_at: Moment("When it was created, in UTC."),
  expires_at: Moment("When its link expires, in UTC."),
}, named("Invitation", "An invitation: a link that works once."));
const LINK = Type.String(about(
  "Give this link to the invited person. Shown only once.",
  "https://talk.example.com/#/join/q8Zr1x0V5mB2nK7c"));
const SESSION = Type.Object({
  id: Type.Integer(about("The session's number.", 9)),
  address: Type.String(about("The IP address it was opened from.", "192.0.2.1")),
  agent: Type.String(about("The browser it was opened with.", "Firefox")),
  is_this: Type.Boolean(about("Whether it is the current session.")),
  created_at: Moment("When it was opened, in UTC."),
  expires_at: Moment("When it expires, in UTC."),
}, named("UserSession", "A browser session of the signed-in member."));

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
      responses: { 200: { description: "The list", schema: dataOf(listOf(MEMBER, "All.")) } },
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
        200: { description: "The list", schema: dataOf(listOf(INVITATION, "All open invitations, "
          + "without their links.")) },
      },
      handle: async ({ caller }) => json(200, {
        data: (await users.invitations(caller.accountId)).map(invitationItem),
      }),
    }),
  ];
}

const FORBIDDEN = { description: "Only an owner may do this, or the caller's role lacks a right" };
const LAST = { description: "The member is the last owner" };

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
      description: "Takes effect with the member's next request. The last owner cannot be demoted.",
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
      description: "Ends the member's sessions and streams at once, and withdraws invitations they "
        + "made. API keys they created belong to the account and stay.",
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
      summary: "Create a link for a member to set a new password",
      description: "The link works once, for one day.",
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
      description: "The link works once, for seven days. An earlier open invitation to the same "
        + "address stops working.",
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
      summary: "Withdraw an invitation",
      notFound: "Invitation not found.",
      params: { id: IdOf("invitation", "GET /user/invitations") },
      responses: { 200: { description: "The invitation's link no longer works",
        schema: MessageSchema } },
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
      description: "Ends all your sessions and invalidates password links. This browser gets a new "
        + "session.",
      body: Type.Object({
        current_password: Type.Optional({
          ...PASSWORD,
          ...about("Your password until now; required if you have one.", "correct horse battery"),
        }),
        password: NEW_PASSWORD,
      }),
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
      summary: "List your sessions",
      responses: { 200: { description: "The list",
        schema: dataOf(listOf(SESSION, "Newest first.")) } },
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
      summary: "End one of your sessions",
      notFound: "Session not found.",
      params: { id: IdOf("session", "GET /user/sessions") },
      responses: { 200: { description: "The session has ended", schema: MessageSchema } },
      handle: async ({ caller, id, http }) => {
        const isClosed = await signIn.closeSession(
          await memberOf(caller), id, await byOf(caller, http));
        if (!isClosed) throw new Fault(404, "Session not found.");
        return json(200, { message: "Session ended." });
      },
    }),
  ];
}
