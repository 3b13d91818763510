// Tickets: signed, for one purpose, for a minute, once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOwnUsedTickets, createTickets } from "#features/accounts/people/tickets.ts";
import { LIMITS } from "#core/limits.ts";
import { createManualSystem } from "#support/manual-clock.ts";

test("[WI30] a ticket opens its stream once, in time, at every node with the secret", async () => {
  const system = createManualSystem();
  const used = createOwnUsedTickets();
  const [here, there] = [0, 1].map(() =>
    createTickets({ secret: "one", used, system })<{ accountId: number; of: string }>("streams"));
  assert.ok(here && there);
  const subject = { accountId: 7, of: "ü" };
  const { ticket, expiresAt } = here.issue(subject);
  assert.equal(expiresAt, system.now() + LIMITS.streamTicketMs * 1000);
  assert.match(ticket, /^[\w-]+\.[\w-]+$/);
  const [body = "", signature = ""] = ticket.split(".");
  const forged = Buffer.from(JSON.stringify([{ ...subject, accountId: 8 }, expiresAt, ""]))
    .toString("base64url");
  for (const wrong of ["", ".", "x", body, `${forged}.${signature}`, `${body}.${signature.slice(1)}`]) {
    assert.equal(await there.redeem(wrong), null);
  }
  for (const other of [
    createTickets({ secret: "one", used, system })("web call"),
    createTickets({ secret: "two", used, system })("streams"),
  ]) assert.equal(await other.redeem(ticket), null);
  const redeemed = await Promise.all(
    [there, here, there].map((node) => node.redeem(ticket)));
  assert.deepEqual(redeemed.filter((one) => one !== null), [subject]);
  const late = here.issue(subject);
  assert.notEqual(here.issue(subject).ticket, late.ticket);
  system.advance(LIMITS.streamTicketMs);
  assert.equal(await there.redeem(late.ticket), null);
});

test("[WI30] a used ticket opens nothing, however its signature is spelt", async () => {
  const system = createManualSystem();
  const tickets = createTickets({ secret: "one", used: createOwnUsedTickets(), system })("streams");
  const subject = { accountId: 7 };
  const { ticket } = tickets.issue(subject);
  assert.deepEqual(await tickets.redeem(ticket), subject);
  const [body, signature = ""] = ticket.split(".");
  const plain = Buffer.from(signature, "base64url").toString("base64");
  for (const spelt of [`${signature}=`, `${signature}!`, ` ${signature}`, plain]) {
    assert.equal(await tickets.redeem(`${body}.${spelt}`), null, spelt);
  }
  assert.equal(await tickets.redeem(`${ticket}.x`), null);
});
