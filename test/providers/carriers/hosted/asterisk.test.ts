// Calls over Asterisk without one: a double of its REST interface and events, for what is asked of
// it, what becomes of calls when something fails or the connection is lost, and hostile events.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { WebSocket } from "ws";
import { readConfig } from "#config/config.ts";
import { ProviderError } from "#core/faults.ts";
import { ASTERISK_LINK_LIMITS } from "#providers/carriers/hosted/asterisk/link.ts";
import { openCodec } from "#providers/carriers/hosted/dialects.ts";
import {
  callOf, connectDouble, CUSTOMER, joins, log, mediaOf, newToken, NUMBER, request, roomOf, system,
  talking,
} from "#support/carriers/asterisk-caller.ts";
import { DOUBLE_PASSWORD, DOUBLE_USER } from "#support/carriers/asterisk-double.ts";
import { createReceived } from "#support/received.ts";
import { startTestServer } from "#support/server.ts";

const LIMITED = { timeout: 180_000 };

const closings: (() => Promise<void>)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});
/** Closed when the file is done. */
async function connect(...options: Parameters<typeof connectDouble>) {
  const world = await connectDouble(...options);
  closings.push(world.close);
  return world;
}

test("[AX20] a call is placed by one request, and one that cannot be placed is reported as refused", LIMITED, async () => {
  const { asterisk, calls, heard, begin } = await connect();
  const token = newToken();
  const early = await calls.dial(request(token));
  assert.deepEqual([early.kind, asterisk.received.events.length], ["refused", 0]);
  await begin();
  for (const to of ["", "911", "+1415555x", "+1&PJSIP/other", `${CUSTOMER}@evil`]) {
    assert.equal((await calls.dial(request(token, { to }))).kind, "refused");
  }
  assert.equal(asterisk.requests("POST /channels").length, 0);
  assert.deepEqual(await calls.dial(request(token)), { kind: "placed", callId: callOf(token) });
  assert.deepEqual(asterisk.requests("POST /channels").map(({ body }) => body), [{
    channelId: callOf(token), app: "parley", endpoint: `PJSIP/${CUSTOMER}@trunk`, timeout: 30,
    callerId: NUMBER,
  }]);
  await calls.dial(request(newToken(), { from: "nobody\" <x>" }));
  assert.ok(!("callerId" in asterisk.requests("POST /channels")[1]!.body));
  for (const status of [400, 409, 500]) {
    asterisk.behave(({ kind }) => (kind === "POST /channels" ? status : null));
    const { kind, ...rest } = await calls.dial(request(newToken()));
    assert.equal(kind, "refused");
    assert.ok("error" in rest && rest.error instanceof ProviderError);
  }
  asterisk.behave(({ kind }) => (kind === "POST /channels" ? "lose" : null));
  const lost = newToken();
  assert.equal((await calls.dial(request(lost))).kind, "unknown");
  assert.equal(asterisk.requests("POST /channels").length, 6);
  asterisk.behave(null);
  asterisk.enters(callOf(lost));
  const { report } = await heard.event<string>(`${lost} answered`);
  assert.equal(report.callId, callOf(lost));
});

test("[AX21] audio is sent in whole frames, far below Asterisk's limit, and marks it drops are reported as played", LIMITED, () => {
  const codec = openCodec("asterisk");
  assert.equal(codec.rate, 16_000);
  const start = { event: "MEDIA_START", connection_id: "c", format: "slin16", channel_variables: { token: "t" } };
  codec.receive(JSON.stringify(start));
  assert.equal((codec.audio(new Int16Array(320)) as Uint8Array).length, 640);
  const processed = (id: string) =>
    codec.receive(JSON.stringify({ event: "MEDIA_MARK_PROCESSED", correlation_id: id }));
  codec.mark("1");
  codec.mark("2");
  assert.deepEqual(processed("1"), [{ kind: "mark", name: "1" }]);
  codec.clear();
  const pcm = Int16Array.of(7);
  assert.deepEqual(codec.receive(Uint8Array.of(7, 0)), [{ kind: "mark", name: "2" }, { kind: "audio", pcm }]);
  assert.deepEqual(codec.receive(Uint8Array.of(7, 0)), [{ kind: "audio", pcm }]);
  codec.clear();
  assert.deepEqual(codec.receive(Uint8Array.of(7, 0)), [{ kind: "audio", pcm }]);
  // Bounded, whatever is never answered.
  for (let at = 0; at < 1000; at += 1) codec.mark(`m${at}`);
  codec.clear();
  assert.ok(codec.receive(Uint8Array.of(7, 0)).length < 100);
});

test("[AX22] an answered call and its audio meet in a bridge that ends with the call", LIMITED, async () => {
  const world = await connect();
  const { asterisk, calls, heard } = world;
  await world.begin();
  asterisk.hasMedia = false;
  const token = newToken();
  await calls.dial(request(token));
  asterisk.enters(callOf(token));
  const { body } = await asterisk.received.event<string>("POST /channels/externalMedia");
  assert.deepEqual(body, {
    channelId: mediaOf(token), app: "parley", external_host: "here", transport: "websocket",
    encapsulation: "none", connection_type: "client", format: "slin16", transport_data: "f(json)",
    variables: { token: "shown" },
  });
  await asterisk.received.event<string>(`POST /bridges/${roomOf(token)}/addChannel`);
  const [bridge] = asterisk.requests(`POST /bridges/${roomOf(token)}`);
  assert.deepEqual(bridge?.body, { type: "mixing", name: "parley" });
  // Not before it is in the application, however long that takes.
  for (const digits of "12345") await calls.sendDtmf!(callOf(token), digits);
  assert.deepEqual(joins(asterisk, token), [callOf(token)]);
  asterisk.enters(mediaOf(token));
  await asterisk.received.event<string>(`POST /bridges/${roomOf(token)}/addChannel`, 1);
  assert.deepEqual(joins(asterisk, token), [callOf(token), mediaOf(token)]);
  asterisk.destroyed(callOf(token), 16);
  const { report } = await heard.event<string>(`${token} ended`);
  assert.deepEqual(report.events, [{ kind: "ended", cause: "far_hung_up" }]);
  await asterisk.received.event<string>(`DELETE /bridges/${roomOf(token)}`);
  await asterisk.received.event<string>(`DELETE /channels/${mediaOf(token)}`);
  assert.deepEqual([asterisk.channels.size, asterisk.bridges.size], [0, 0]);
});

test("[AX22] if any step fails the call is hung up and nothing is left", LIMITED, async () => {
  const world = await connect();
  const { asterisk, calls, heard } = world;
  await world.begin();
  const isJoin = (which: "call" | "media") =>
    ({ kind, body }: { kind: string; body: Record<string, unknown> }) =>
      kind.endsWith("/addChannel") && String(body.channel).startsWith(`parley-${which}`);
  const steps = [
    ({ kind }: { kind: string }) => kind === "POST /channels/externalMedia",
    ({ kind }: { kind: string }) => kind.startsWith("POST /bridges/parley-room-") && !kind.endsWith("/addChannel"),
    isJoin("call"), isJoin("media"),
  ];
  for (const step of steps) {
    for (const how of [422, 500, "lose"] as const) {
      const token = newToken();
      asterisk.behave((one) => (step(one) ? how : null));
      await calls.dial(request(token));
      asterisk.enters(callOf(token));
      await heard.event<string>(`${token} ended`);
      await asterisk.received.event<string>(`DELETE /bridges/${roomOf(token)}`);
      await asterisk.received.event<string>(`DELETE /channels/${mediaOf(token)}`);
      asterisk.behave(null);
    }
  }
  // Its media channel cannot reach us.
  asterisk.hasMedia = false;
  const unreached = newToken();
  await calls.dial(request(unreached));
  asterisk.enters(callOf(unreached));
  await asterisk.received.event<string>(`POST /bridges/${roomOf(unreached)}/addChannel`);
  asterisk.destroyed(mediaOf(unreached), 0);
  await heard.event<string>(`${unreached} ended`);
  // The caller is gone before it has one.
  const early = newToken();
  await calls.dial(request(early));
  asterisk.enters(callOf(early));
  await asterisk.received.event<string>("POST /channels/externalMedia", 13);
  asterisk.destroyed(callOf(early), 16);
  await asterisk.received.event<string>(`DELETE /bridges/${roomOf(early)}`);
  await asterisk.received.event<string>(`DELETE /channels/${mediaOf(early)}`);
  // One that came in: whoever wants it answered is notified.
  asterisk.enters("1.1");
  asterisk.behave((one) => (steps[0]!(one) ? 500 : null));
  const inbound = newToken();
  await assert.rejects(calls.answer("1.1", request(inbound).join), ProviderError);
  await calls.hangUp("1.1");
  assert.deepEqual([asterisk.channels.size, asterisk.bridges.size], [0, 0]);
});

test("[AX23] a lost connection is reopened, with a delay that grows up to a bound", LIMITED, async () => {
  const pauses: number[] = [];
  let aheadMs = 0;
  const watched = {
    ...system,
    monotonicMs: () => system.monotonicMs() + aheadMs,
    after: (delayMs: number, run: () => void) => {
      // Those of the connection itself are much longer.
      if (delayMs < 1000) pauses.push(delayMs);
      return system.after(delayMs, run);
    },
  };
  const { asterisk, begin } = await connect({
    system: watched, linkLimits: { pauseMs: 4, pauseMaxMs: 30, goodMs: 10_000 },
  });
  await begin();
  const lose = async (number: number): Promise<void> => {
    asterisk.cut();
    await asterisk.received.event<string>("connected", number);
    await asterisk.received.event<string>("GET /bridges", number);
  };
  for (let number = 1; number <= 6; number += 1) await lose(number);
  assert.deepEqual(pauses, [4, 8, 16, 30, 30, 30]);
  // One that has lasted makes it short again.
  aheadMs += 10_000;
  await lose(7);
  assert.equal(pauses.at(-1), 4);
  // One that was taken away tells nothing more: it is taken back, in no hurry.
  asterisk.tell({ type: "ApplicationReplaced", application: "parley" });
  await asterisk.received.event<string>("connected", 8);
  assert.equal(pauses.at(-1), 30);
  const { pauseMs, pauseMaxMs } = ASTERISK_LINK_LIMITS;
  assert.ok(pauseMs >= 100 && pauseMaxMs <= 60_000 && pauseMs < pauseMaxMs);
});

test("[AX24] after a lost connection, calls that are gone have ended, and unknown ones are hung up", LIMITED, async () => {
  const world = await connect();
  const { asterisk, calls, heard, begin } = world;
  const [old, kept, room, handed] = [newToken(), newToken(), newToken(), newToken()];
  const inStasis = (data: string) =>
    ({ dialplan: { context: "in", exten: "1", app_name: "Stasis", app_data: data } });
  // The channels are of a server before this one, of others, and of nobody.
  for (const [id, more] of [
    [callOf(old), { state: "Ringing", dialplan: { context: "x", exten: "1", app_name: "AppDial2", app_data: "" } }],
    [mediaOf(old), {}], ["9.1", inStasis("parley,in")], ["9.2", inStasis("parley2")],
    ["parley2-call-" + kept, { dialplan: { context: "", exten: "", app_name: "Stasis", app_data: "parley2" } }],
    [callOf(handed), { dialplan: { context: "parley", exten: "transfer", app_name: "Dial", app_data: "" } }],
    ["9.3", { dialplan: { context: "in", exten: "1", app_name: "Dial", app_data: "parley" } }],
  ] as const) asterisk.enters(id, more);
  asterisk.bridges.add(roomOf(room)).add("other");
  await begin();
  await asterisk.received.event<string>(`DELETE /bridges/${roomOf(room)}`);
  assert.deepEqual([...asterisk.channels.keys()],
    ["9.2", `parley2-call-${kept}`, callOf(handed), "9.3"]);
  assert.deepEqual([...asterisk.bridges], ["other"]);

  const ringing = newToken();
  const [gone, going] = [await talking(world), await talking(world)];
  await calls.dial(request(ringing));
  for (const token of [gone, ringing]) {
    asterisk.channels.delete(callOf(token));
    asterisk.channels.delete(mediaOf(token));
  }
  asterisk.channels.set("7.7", { ...asterisk.channels.get("9.2")!, id: "7.7" });
  asterisk.cut();
  const ends = [gone, ringing].map((token) => heard.event<string>(`${token} ended`));
  const causes = (await Promise.all(ends)).map(({ report }) => report.events[0]);
  assert.deepEqual(causes, [
    { kind: "ended", cause: "far_hung_up" }, { kind: "ended", cause: "failed" },
  ]);
  // What goes on is published again: whoever could not hang it up tries again.
  await heard.event<string>(`${going} answered`, 1);
  assert.ok(!heard.kinds().includes(`${going} ended`));
  assert.ok(asterisk.channels.has(callOf(going)) && asterisk.bridges.has(roomOf(going)));
});

test("[AX25] no event makes the adaptor throw, and senseless ones are ignored", LIMITED, async () => {
  const { asterisk, calls, heard, begin } = await connect();
  await begin();
  const token = newToken();
  await calls.dial(request(token));
  const anyLeaf = fc.oneof(
    fc.string(), fc.double(), fc.constant(null), fc.boolean(), fc.constant("x".repeat(600)),
    fc.constantFrom("Ringing", "Up", "ANSWER", "__proto__", "toString", callOf("1"), "parley-room-"),
  );
  const FIELDS = ["type", "channel", "peer", "id", "state", "cause", "dialstatus", "caller", "dialplan", "__proto__"];
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 }, anyLeaf, fc.array(tie("tree"), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom(...FIELDS), tie("tree"), { maxKeys: 5 })),
  }));
  const TYPES = ["StasisStart", "StasisEnd", "ChannelStateChange", "Dial", "ChannelDestroyed", "PlaybackStarted"];
  const events = fc.sample(fc.oneof(
    fc.string(), fc.json(), tree.map((one) => JSON.stringify(one)),
    fc.tuple(fc.constantFrom(...TYPES), fc.dictionary(fc.constantFrom(...FIELDS.slice(1)), tree))
      .map(([type, rest]) => JSON.stringify({ ...rest, type })),
  ), { numRuns: 2000, seed: 20_26 });
  for (const event of events) asterisk.tell(event);
  asterisk.tell({ type: "StasisStart", channel: { id: `../${token}`, state: "Up" } });
  asterisk.enters("../../channels/evil?a=b", { state: "Ring", caller: { number: "" } });
  const { report } = await heard.event<string>("offer ../../channels/evil?a=b");
  assert.deepEqual([report.from, report.to, report.isOffer], [null, "s", true]);
  await calls.refuse(report.callId, "busy");
  // One segment of a path, whatever it looks like.
  assert.equal(asterisk.requests("DELETE /channels/..%2F..%2Fchannels%2Fevil%3Fa%3Db").length, 1);
  for (const { token: told } of heard.events) assert.ok(told === null || told === token);
  asterisk.destroyed(callOf(token), 17);
  assert.deepEqual((await heard.event<string>(`${token} ended`)).report.events,
    [{ kind: "ended", cause: "busy" }]);
});

test("[AX26] the password appears in a header only: in no URL, body, message or log", LIMITED, async () => {
  const lines = createReceived<{ kind: string; args: unknown[] }>();
  const take = (...args: unknown[]): void => lines.receive({ kind: String(args.at(-1)), args });
  const told = { ...log, info: take, warn: take, error: take } as unknown as typeof log;
  const { asterisk, calls, begin } = await connect({ log: told });
  await begin();
  asterisk.behave(() => 500);
  const refused = await calls.dial(request(newToken()));
  asterisk.cut();
  await asterisk.received.event<string>("connected", 1);
  const wrong = await connect({ log: told, password: "wrong sesame" });
  wrong.calls.connect!({ report: () => undefined, offer: () => undefined });
  // The first was of the one that was cut.
  const { args } = await lines.event<string>("no connection to Asterisk: its calls are unavailable", 1);
  assert.match(textOf(args), /refuses the key \(401\)/);
  const { events } = asterisk.received;
  const asked = events.map(({ kind, body, query }) => [kind, body, String(query)]);
  const everything = textOf([lines.events, asked, refused]);
  assert.ok(lines.events.length >= 3);
  const encoded = (text: string) => Buffer.from(`${DOUBLE_USER}:${text}`).toString("base64");
  for (const secret of [DOUBLE_PASSWORD, "wrong sesame"]) {
    assert.ok(!everything.includes(secret) && !everything.includes(encodeURIComponent(secret)));
    assert.ok(!everything.includes(encoded(secret)));
  }
});

/** With what errors say, their causes among it. */
const textOf = (value: unknown): string => JSON.stringify(value, (_, one: unknown) =>
  (one instanceof Error ? { message: one.message, stack: one.stack, cause: one.cause } : one));

test("[AX27] the number of calls is bounded, and ended calls are forgotten", LIMITED, async () => {
  const world = await connect({ callLimits: { callsMax: 3, settleMs: 20 } });
  const { asterisk, calls, heard, begin } = world;
  await begin();
  for (let round = 0; round < 3; round += 1) {
    const outbound = [await talking(world), newToken()] as const;
    await calls.dial(request(outbound[1]));
    asterisk.enters("1.1", { state: "Ring" });
    await heard.event<string>("offer 1.1", round);
    assert.equal((await calls.dial(request(newToken()))).kind, "refused");
    asterisk.enters("1.2", { state: "Ring" });
    await asterisk.received.event<string>("DELETE /channels/1.2", round);
    assert.equal(asterisk.requests("DELETE /channels/1.2")[round]!.query.get("reason"), "busy");
    // One by our own hand, one by theirs, and one that gave up.
    await calls.hangUp(callOf(outbound[0]));
    asterisk.destroyed(callOf(outbound[1]), 19);
    asterisk.tell({ type: "StasisEnd", channel: asterisk.channels.get("1.1") });
    asterisk.channels.delete("1.1");
    await Promise.all(outbound.map((token) => heard.event<string>(`${token} ended`)));
  }
  assert.ok(!heard.kinds().includes("offer 1.2"));
});

test("[AX28] calls are transferred only to numbers the dialplan accepts", LIMITED, async () => {
  const world = await connect();
  const { asterisk, calls, heard, begin } = world;
  await begin();
  const token = await talking(world);
  const handover = { callId: callOf(token), to: CUSTOMER, callerId: NUMBER, statusUrl: "" };
  const left = `POST /channels/${callOf(token)}/continue`;
  for (const to of ["sip:ada@example.org", "100", "", `${CUSTOMER}&PJSIP/x`]) {
    await assert.rejects(calls.transfer({ ...handover, to }), /telephone numbers only/);
  }
  await assert.rejects(calls.transfer({ ...handover, callId: "1.5" }), /the call is over/);
  asterisk.behave(({ kind }) => (kind === left ? 409 : null));
  await assert.rejects(calls.transfer(handover), /Asterisk answered 409/);
  asterisk.behave(({ kind }) => {
    // It leaves before the answer is there, as the real one does.
    if (kind === left) asterisk.tell({ type: "StasisEnd", channel: asterisk.channels.get(callOf(token)) });
    return null;
  });
  await calls.transfer(handover);
  assert.deepEqual(asterisk.requests(left).at(-1)?.body,
    { context: "parley", extension: "transfer", priority: 1 });
  const set = asterisk.requests(`POST /channels/${callOf(token)}/variable`).slice(-2);
  assert.deepEqual(set.map(({ body }) => body), [
    { variable: "PARLEY_TRANSFER", value: `PJSIP/${CUSTOMER}@trunk` },
    { variable: "CALLERID(num)", value: NUMBER },
  ]);
  assert.ok(asterisk.channels.has(callOf(token)));
  assert.deepEqual([asterisk.channels.has(mediaOf(token)), asterisk.bridges.size], [false, 0]);
  asterisk.destroyed(callOf(token), 16);
  const next = await talking(world);
  assert.ok(!heard.kinds().includes(`${token} ended`));
  asterisk.destroyed(callOf(next), 16);
  await heard.event<string>(`${next} ended`);
});

test("[AX29] the settings are validated together, the socket accepts its subprotocol, and there is no webhook route", LIMITED, async () => {
  const { asterisk } = await connect();
  const env = {
    PARLEY_ASTERISK_URL: asterisk.url, PARLEY_ASTERISK_USER: DOUBLE_USER,
    PARLEY_ASTERISK_PASSWORD: DOUBLE_PASSWORD, PARLEY_ASTERISK_ENDPOINT: "PJSIP/{number}@trunk",
  };
  const problems = (changes: Record<string, string>): string[] => {
    const outcome = readConfig({ ...env, ...changes });
    return outcome.kind === "invalid" ? outcome.problems : [];
  };
  assert.deepEqual(problems({}), []);
  for (const name of Object.keys(env)) assert.match(problems({ [name]: "" }).join(), /must be set together/);
  for (const endpoint of ["PJSIP/trunk", "{number}", "PJSIP/{number} x", "/{number}"]) {
    assert.match(problems({ PARLEY_ASTERISK_ENDPOINT: endpoint }).join(), /such as PJSIP/);
  }
  for (const app of ["a,b", "a b", "-a", "x".repeat(41)]) {
    assert.match(problems({ PARLEY_ASTERISK_APP: app }).join(), /letters, digits/);
    assert.match(problems({ PARLEY_ASTERISK_MEDIA: app }).join(), /letters, digits/);
  }
  const server = await startTestServer({ env: { PARLEY_SPEECH: "loopback", ...env } });
  try {
    const { query } = await asterisk.received.event<string>("connected");
    assert.deepEqual([...query], [["app", "parley"], ["subscribeAll", "false"]]);
    for (const path of ["voice", `status/${newToken()}`]) {
      const { status } = await fetch(`${server.url}/carriers/asterisk/${path}`, { method: "POST" });
      assert.ok(status === 404 || status === 405, `${status}`);
    }
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/carriers/asterisk/media`, "media");
    await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
    assert.equal(socket.protocol, "media");
    const closed = new Promise<number>((resolve) => socket.on("close", resolve));
    socket.send(JSON.stringify({ event: "MEDIA_START", connection_id: "c", format: "slin16", channel_variables: { token: newToken() } }));
    assert.equal(await closed, 4500);
  } finally {
    await server.close();
  }
});
