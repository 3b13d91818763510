// What each role may do, as one table. Which route takes which right stands in app/rights.ts.

export const RIGHTS = [
  "view", "answer", "build", "buy", "money", "keys", "members", "audit", "own",
] as const;
/**
 * `view`: read what the account has. `answer`: talk with visitors and callers, keep leads.
 * `build`: assistants, tools, knowledge, campaigns, webhooks. `buy`: numbers and trunks. `money`:
 * the ledger. `keys`: API keys. `members`: people and invitations. `audit`: who did what. `own`:
 * one's own password and sessions.
 */
export type Right = (typeof RIGHTS)[number];

export const ROLES = ["owner", "admin", "builder", "operator", "viewer"] as const;
export type Role = (typeof ROLES)[number];

export const ROLE_RIGHTS: Record<Role, readonly Right[]> = {
  owner: RIGHTS,
  admin: RIGHTS,
  builder: ["view", "answer", "build", "own"],
  operator: ["view", "answer", "own"],
  viewer: ["view", "own"],
};

export const may = (role: Role, right: Right): boolean => ROLE_RIGHTS[role].includes(right);

/** Only owners may make, change or remove owners. */
export const mayManage = (by: Role, ...roles: Role[]): boolean =>
  may(by, "members") && (by === "owner" || !roles.includes("owner"));
