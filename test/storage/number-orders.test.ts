// Numbers that are bought, renewed and given up, where two ask at the same time or one asks twice.
// Asked through the storage port of every engine.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { DAY_MICROS } from "#core/zones.ts";
import { createWorld, ENGINES, openFor, PRICE, system, typesOf } from "#support/databases/contract-world.ts";

let last = 1000;

for (const engine of ENGINES.filter(({ skip }) => !skip)) {
  const storage = await openFor({ after }, engine);
  const world = createWorld(storage);
  const { phoneNumbers } = storage;

  const newNumber = (): string => `+1201555${last += 1}`;
  const order = async (accountId: number, phoneNumber: string) => {
    const uuid = system.uuid();
    const { kind } = await phoneNumbers.order({
      uuid, accountId, idempotencyKey: null, phoneNumber, countryCode: "US", smsCapable: false,
      region: null, provider: "twilio", priceMicros: PRICE, now: system.now(),
    });
    return { kind, ref: { accountId, uuid, now: system.now() } };
  };
  const sid = "PN1";
  /** A number of an account that can pay for so many months. */
  const bought = async (months = 1) => {
    const { accountId } = await world.newConversation(months * PRICE);
    const phoneNumber = newNumber();
    const { ref } = await order(accountId, phoneNumber);
    await phoneNumbers.complete({ ...ref, sid });
    const [number] = await phoneNumbers.listOwned(accountId);
    assert.ok(number?.paidUntil);
    const { id: phoneNumberId, paidUntil } = number;
    const renew = async (now: number) => typesOf(
      await phoneNumbers.renew({ accountId, phoneNumberId, now, graceMicros: DAY_MICROS }));
    return { accountId, phoneNumber, phoneNumberId, paidUntil, ref, renew };
  };

  test(`[MU33] ${engine.name}: an order is settled once, however often it is settled`, async () => {
    const { accountId, ref } = await bought();
    assert.deepEqual(await phoneNumbers.complete({ ...ref, sid }), []);
    await phoneNumbers.fail({ ...ref, status: 500, error: "No.", mayArrive: false });
    assert.equal((await phoneNumbers.findPurchase(ref.uuid))?.state, "completed");
    assert.deepEqual(await phoneNumbers.returns("twilio", 0, 9), []);
    assert.deepEqual(await world.money(accountId), [0, 0]);
  });

  test(`[MU34] ${engine.name}: a month is charged when it is due, once, however many sweep`, async () => {
    const { accountId, paidUntil, renew } = await bought(4);
    assert.deepEqual(await renew(paidUntil - 1), []);
    assert.ok((await renew(paidUntil)).includes("phone_number_renewed"));
    assert.deepEqual(await renew(paidUntil), []);
    assert.deepEqual(await world.money(accountId), [2 * PRICE, 0]);
  });

  test(`[MU35] ${engine.name}: what one account is buying or has, no other can order`, async () => {
    const { phoneNumber } = await bought();
    const { accountId: other } = await world.newConversation(PRICE);
    assert.equal((await order(other, phoneNumber)).kind, "in_use");
    const wanted = newNumber();
    const { accountId: first } = await world.newConversation(PRICE);
    const { kind, ref } = await order(first, wanted);
    assert.deepEqual([kind, (await order(other, wanted)).kind], ["ordered", "in_use"]);
    await phoneNumbers.fail({ ...ref, status: 500, error: "No.", mayArrive: true });
    assert.equal((await order(other, wanted)).kind, "in_use", "it may still be delivered");
    await phoneNumbers.fail({ ...ref, status: 500, error: "No.", mayArrive: false });
    assert.equal((await order(other, wanted)).kind, "ordered");
    assert.deepEqual(await world.money(first), [PRICE, 0]);
  });

  test(`[MU36] ${engine.name}: an unpaid number rings until it is suspended, and goes at once when it is given up`, async () => {
    const { accountId, phoneNumber, phoneNumberId, paidUntil, renew } = await bought();
    const rings = async () => [
      (await phoneNumbers.findProvided(phoneNumber))?.accountId ?? null,
      (await phoneNumbers.findHosted(phoneNumber))?.accountId ?? null,
    ];
    assert.deepEqual(await renew(paidUntil), ["phone_number_grace"]);
    assert.deepEqual(await rings(), [accountId, accountId]);
    const later = paidUntil + 2 * DAY_MICROS;
    assert.deepEqual(await renew(later), ["phone_number_suspended"]);
    assert.deepEqual(await rings(), [null, null]);
    const { kind } = await phoneNumbers.release({ accountId, phoneNumberId, now: later });
    assert.equal(kind, "removed");
    assert.deepEqual((await phoneNumbers.returns("twilio", 0, 99)).map((one) => one.sid), [sid]);
  });
}
