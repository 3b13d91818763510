// Members, invitations, sessions and the audit log, asked through the storage port of every engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import { during, type Deed } from "#core/deed.ts";
import type { By } from "#features/accounts/audit.ts";
import type { Role } from "#features/accounts/people/roles.ts";
import type { Manager } from "#features/accounts/people/users.ts";
import { ENGINES, openFor, system } from "#support/databases/contract-world.ts";

const by: By = { actor: { kind: "key", id: "key:1", name: "Key" }, address: "192.0.2.1" };
const OWNER = { userId: null, role: "owner" as const };

for (const engine of ENGINES) {
  const name = `[AU324][ND70] ${engine.name}: members and the audit log behave the same on every engine`;
  test(name, { skip: engine.skip ?? false }, async (context) => {
    const storage = await openFor(context, engine);
    const { users, audit, accounts } = storage;
    const now = system.now();
    const [own, other] = await Promise.all(["A", "B"].map(async (account) =>
      (await accounts.createAccount({ name: account, email: "", plan: "self-hosted", now })).id));
    assert.ok(own && other);
    const invite = (accountId: number, email: string, role: Role, userId: number | null = null) =>
      users.invite({
        accountId, userId, email, role, tokenHash: `hash of ${email} ${accountId} ${userId}`,
        expiresAt: now + 10, manager: OWNER, by, now,
      });
    const join = async (accountId: number, email: string, role: Role) => {
      const invited = await invite(accountId, email, role);
      assert.ok(invited.kind === "invited");
      return users.join({
        accountId, invitationId: invited.invitation.id, name: email, passwordHash: "h", now,
        subject: null, address: "192.0.2.2",
      });
    };
    assert.equal(await users.hasAny(), false);
    const tryPassword = (at: number, ...counted: [string, number][]) => users.tryPassword({
      counted: counted.map(([whoHash, max]) => ({ whoHash, max })), windowMicros: 100, now: at,
    });
    const tried = [];
    for (const at of [1000, 1010, 1020]) tried.push(await tryPassword(at, ["pair", 2], ["place", 9]));
    assert.deepEqual(tried, [0, 0, 80], "the first of two leaves after 100");
    assert.equal(await tryPassword(1030, ["place", 3]), 70, "who is refused counts elsewhere");
    assert.equal(await tryPassword(1100, ["pair", 2]), 0, "as the first has left");
    assert.equal(await tryPassword(1101, ["pair", 2]), 9);
    const atOnce = await Promise.all(Array.from({ length: 6 }, () => tryPassword(2000, ["more", 4])));
    assert.equal(atOnce.filter((wait) => wait === 0).length, 4);
    const ana = await join(own, "ana@example.org", "owner");
    assert.ok(ana.kind === "joined");
    assert.equal(await users.hasAny(), true);
    assert.deepEqual(await invite(own, "ana@example.org", "owner"), { kind: "is_member" });
    assert.deepEqual(await join(other, "ana@example.org", "owner"), { kind: "email_taken" });
    const ben = await join(own, "ben@example.org", "operator");
    assert.ok(ben.kind === "joined");
    assert.equal((await users.findByEmail("ben@example.org"))?.passwordHash, "h");
    assert.equal(await users.find(other, ben.user.id), null);
    const change = (userId: number, role: Role, manager: Manager = OWNER) =>
      users.change({ accountId: own, userId, role, name: null, manager, by, now });
    assert.equal((await change(ana.user.id, "viewer")).kind, "last_owner");
    assert.equal((await change(ben.user.id, "owner", { userId: ben.user.id, role: "owner" })).kind, "forbidden");
    assert.equal((await users.change({
      accountId: other, userId: ben.user.id, role: "viewer", name: null, manager: OWNER, by, now,
    })).kind, "not_found");
    assert.equal((await change(ben.user.id, "admin")).kind, "changed");
    const open = (
      tokenHash: string, expiresAt = now + 100, provenBy: string | null = "h",
    ) => users.openSession({
      accountId: own, userId: ben.user.id, tokenHash, address: "a", agent: "b", expiresAt, by, now,
      provenBy,
    });
    assert.equal(await open("late", now + 100, "the password of before"), null);
    for (let count = 0; count < 25; count += 1) await open(`t${count}`);
    assert.equal((await users.sessions(ben.user.id, now)).length, 20, "the oldest have ended");
    const session = await users.findSession("t24", now);
    assert.equal(session?.user.role, "admin");
    assert.equal((await users.sessionById(session?.sessionId ?? 0, now))?.id, ben.user.id);
    assert.equal(await users.findSession("t24", now + 100), null);
    const close = (userId: number) => users.closeSession(
      { accountId: own, userId, sessionId: session?.sessionId ?? 0, by, now });
    assert.deepEqual([await close(ana.user.id), await close(ben.user.id)], [false, true]);
    const link = (subject: string) => users.link({
      accountId: own, userId: ben.user.id, subject: { issuer: "i", subject }, by, now });
    // Two people of one address, and one of them in two tabs.
    assert.deepEqual(await Promise.all(["s", "t", "s"].map(link)), [true, false, true]);
    assert.equal((await users.findBySubject({ issuer: "i", subject: "s" }))?.id, ben.user.id);
    assert.equal(await users.findBySubject({ issuer: "i", subject: "t" }), null);
    const reset = await invite(own, "ben@example.org", "admin", ben.user.id);
    assert.ok(reset.kind === "invited");
    const used = { accountId: own, invitationId: reset.invitation.id, name: "x", passwordHash: "n",
      subject: null, address: "a", now };
    assert.equal((await users.join(used)).kind, "joined");
    assert.equal((await users.join(used)).kind, "gone");
    assert.deepEqual(await users.sessions(ben.user.id, now), []);
    assert.equal((await users.remove({
      accountId: own, userId: ben.user.id, manager: OWNER, by, now,
    })).kind, "changed");
    assert.equal(await users.findByEmail("ben@example.org"), null);
    assert.equal(await link("s"), false, "a member that is gone");
    const again = await users.add({
      accountId: own, email: "ben@example.org", role: "viewer", name: "Ben", passwordHash: null,
      subject: { issuer: "i", subject: "s" }, address: "a", now,
    });
    assert.ok(again && again.id !== ben.user.id);
    const expired = await users.invitationFor("late@example.org", now);
    assert.equal(expired, null);
    await invite(own, "late@example.org", "viewer");
    assert.ok(await users.invitationFor("late@example.org", now));
    assert.deepEqual((await users.invitations(own, now)).length, 1);
    assert.deepEqual(await users.invitations(own, now + 10), []);

    const entries = await audit.page(own, {}, null, 100);
    assert.equal(entries.length, await audit.newest(own));
    assert.equal((await audit.page(own, { action: "session." }, null, 100)).length, 26);
    assert.equal((await audit.page(own, { action: "SESSION." }, null, 100)).length, 26);
    assert.equal((await audit.page(own, { action: "session_" }, null, 100)).length, 0);
    const days = { objectId: String(ben.user.id), from: now, to: now + 1 };
    assert.ok((await audit.page(own, days, null, 100)).length > 0);
    const [oldest] = await audit.after(own, 0, 1);
    assert.deepEqual([oldest?.number, oldest?.action, oldest?.actor], [1, "invitation.create", by.actor]);

    const doing = async (action: string, objectId: string | null, work: () => Promise<unknown>) => {
      const deed: Deed = {
        state: "open", note: { ...by, accountId: own, action, objectId, fields: ["name"], now },
      };
      await during(deed, work);
      const [newest] = await audit.page(own, {}, null, 1);
      return { state: deed.state, noted: newest?.action === action ? newest : null };
    };
    const { folders } = storage;
    const named = (label: string) => ({ accountId: own, name: label, color: null });
    const made = await doing("folder.create", null, async () => {
      await folders.create(named("Sales"));
      await folders.create(named("Support"));
    });
    const id = made.noted?.object?.id ?? "";
    const changes = { name: "Shop" };
    const groupId = Number(id);
    const rename = () => folders.update({ accountId: own, groupId, changes });
    assert.deepEqual([made.state, made.noted?.number, made.noted?.actor], ["noted", entries.length + 1, by.actor]);
    assert.deepEqual(made.noted?.details,
      { fields: ["name"], after: { name: "Sales", color: null } }, "the first alone");
    const taken = await doing("folder.taken", id, async () => {
      await folders.create(named("Support"));
      await folders.create({ ...named("Foreign"), accountId: other });
    });
    assert.deepEqual([taken.noted, taken.state], [null, "over"], "refused, or another account's");
    assert.deepEqual((await doing("folder.update", id, rename)).noted?.details,
      { fields: ["name"], before: { name: "Sales" }, after: { name: "Shop" } });
    const gone = await doing("folder.delete", id, () =>
      folders.remove({ accountId: own, groupId, rows: 9, now }));
    assert.deepEqual(gone.noted?.details,
      { fields: ["name"], before: { name: "Shop", color: null } });
    const broken = await doing("folder.broken", null, async () => {
      await assert.rejects(folders.create({ ...named("x"), name: null as never }));
    });
    assert.deepEqual([broken.noted, await audit.newest(own)], [null, entries.length + 3], "nothing of it happened");

    assert.equal(await audit.trim(now, 100), 0);
    assert.ok(await audit.trim(now + 1, 10) > 0);
    assert.equal(await audit.newest(own), entries.length + 3, "numbers go on");
  });
}
