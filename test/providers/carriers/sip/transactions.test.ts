// The transaction layer of SIP on a wire that loses, doubles and reorders, with a clock that only
// moves when told to.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseCseq } from "#providers/carriers/sip/grammar/headers.ts";
import {
  parseMessage, responseTo, type SipMessage, type SipRequest,
} from "#providers/carriers/sip/grammar/message.ts";
import type { Peer } from "#providers/carriers/sip/transport/peer.ts";
import { createTransactions } from "#providers/carriers/sip/transport/transactions.ts";
import type { ServerTransaction } from "#providers/carriers/sip/transport/server-transactions.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { makeRequest, makeResponse } from "#support/sip/sip-phones.ts";

const FAR: Peer = { host: "192.0.2.2", port: 5060, transport: "udp" };
const STREAM: Peer = { ...FAR, transport: "tcp" };

function createBench() {
  const system = createManualSystem();
  const sent: { atMs: number; peer: Peer; message: SipMessage; fail: () => void }[] = [];
  const requests: SipRequest[] = [];
  const transactions = createTransactions({
    system,
    send: (peer, bytes, fail) => {
      const parsed = parseMessage(bytes);
      assert.equal(parsed.kind, "message");
      if (parsed.kind !== "message") return;
      sent.push({ atMs: system.monotonicMs(), peer, message: parsed.message, fail });
    },
    onRequest: (request) => void requests.push(request),
  });
  const told: string[] = [];
  const handlers = {
    response: ({ status }: { status: number }) => void told.push(String(status)),
    failed: (why: string) => void told.push(why),
  };
  return { system, sent, requests, transactions, told, handlers };
}

const times = (sent: { atMs: number }[]) => sent.map(({ atMs }) => atMs);
const words = (sent: { message: SipMessage }[]) => sent.map(({ message }) =>
  message.kind === "request" ? message.method : String(message.status));

test("[SI20] an unanswered INVITE is sent seven times at doubling intervals, then given up", () => {
  const { system, sent, transactions, told, handlers } = createBench();
  transactions.clients.start(makeRequest("INVITE", "z9hG4bK1"), FAR, handlers);
  system.advance(31_999);
  assert.deepEqual(told, []);
  system.advance(1);
  assert.deepEqual(times(sent), [0, 500, 1500, 3500, 7500, 15_500, 31_500]);
  assert.deepEqual(told, ["timeout"]);
  assert.equal(transactions.clients.size(), 0);
  assert.equal(system.pending(), 0);
});

test("[SI21] a provisional response stops an INVITE's retransmissions and its timeout", () => {
  const { system, sent, transactions, told, handlers } = createBench();
  const request = makeRequest("INVITE", "z9hG4bK1");
  transactions.clients.start(request, FAR, handlers);
  system.advance(600);
  transactions.receive(makeResponse(request, 180), FAR);
  system.advance(100_000);
  assert.equal(sent.length, 2);
  assert.deepEqual(told, ["180"]);
});

test("[SI22] a refused INVITE is acknowledged at each copy of the refusal, and reported once", () => {
  const { system, sent, transactions, told, handlers } = createBench();
  const request = makeRequest("INVITE", "z9hG4bK1");
  transactions.clients.start(request, FAR, handlers);
  transactions.receive(makeResponse(request, 486), FAR);
  transactions.receive(makeResponse(request, 486), FAR);
  // Reordered: what was said before comes after.
  transactions.receive(makeResponse(request, 180), FAR);
  assert.deepEqual(told, ["486"]);
  assert.deepEqual(words(sent), ["INVITE", "ACK", "ACK"]);
  const acknowledgement = sent[1]!.message;
  assert.equal(acknowledgement.headers.get("Via"), request.headers.get("Via"));
  assert.equal(acknowledgement.headers.get("Route"), "<sip:192.0.2.9;lr>");
  assert.equal(acknowledgement.headers.get("To"), "<sip:b@example.org>;tag=b");
  assert.equal(acknowledgement.headers.get("CSeq"), "1 ACK");
  system.advance(31_999);
  assert.equal(transactions.clients.size(), 1);
  system.advance(1);
  assert.equal(transactions.clients.size(), 0);
  assert.equal(system.pending(), 0);
});

test("[SI23] every 200 to an INVITE is passed up, and the transaction does not acknowledge it", () => {
  const { system, sent, transactions, told, handlers } = createBench();
  const request = makeRequest("INVITE", "z9hG4bK1");
  transactions.clients.start(request, FAR, handlers);
  transactions.receive(makeResponse(request, 200), FAR);
  transactions.receive(makeResponse(request, 200, "fork"), FAR);
  system.advance(31_999);
  transactions.receive(makeResponse(request, 200), FAR);
  system.advance(1);
  transactions.receive(makeResponse(request, 200), FAR);
  assert.deepEqual(told, ["200", "200", "200"]);
  assert.deepEqual(words(sent), ["INVITE"]);
});

test("[SI24] other requests are retransmitted up to every 4 s, even after a provisional response", () => {
  const { system, sent, transactions, told, handlers } = createBench();
  const request = makeRequest("BYE", "z9hG4bK1");
  transactions.clients.start(request, FAR, handlers);
  system.advance(7600);
  assert.deepEqual(times(sent), [0, 500, 1500, 3500, 7500]);
  transactions.receive(makeResponse(request, 100), FAR);
  system.advance(4000);
  assert.equal(sent.length, 6);
  system.advance(32_000);
  assert.deepEqual(told, ["100", "timeout"]);
});

test("[SI25] over a connection nothing is retransmitted, and a closed connection fails the request", () => {
  const { system, sent, transactions, told, handlers } = createBench();
  transactions.clients.start(makeRequest("INVITE", "z9hG4bK1", "TCP"), STREAM, handlers);
  system.advance(20_000);
  assert.equal(sent.length, 1);
  sent[0]!.fail();
  sent[0]!.fail();
  system.advance(60_000);
  assert.deepEqual(told, ["transport"]);
  assert.equal(system.pending(), 0);
});

test("[SI26] a response counts only with the branch and the method of its request", () => {
  const { transactions, told, handlers } = createBench();
  const request = makeRequest("INVITE", "z9hG4bK1");
  transactions.clients.start(request, FAR, handlers);
  transactions.receive(makeResponse(makeRequest("INVITE", "z9hG4bK2"), 200), FAR);
  transactions.receive(makeResponse(makeRequest("CANCEL", "z9hG4bK1"), 200), FAR);
  assert.deepEqual(told, []);
});

test("[SI27] a retransmitted request gets the same answer and is not taken for a new one", () => {
  const { system, sent, requests, transactions } = createBench();
  const request = makeRequest("BYE", "z9hG4bK1");
  transactions.receive(request, FAR);
  const transaction = transactions.servers.serve(request, FAR);
  transactions.receive(request, FAR);
  assert.equal(sent.length, 0);
  transaction.respond(responseTo(request, 200));
  transaction.respond(responseTo(request, 500));
  transactions.receive(request, FAR);
  assert.deepEqual(words(sent), ["200", "200"]);
  assert.equal(requests.length, 1);
  system.advance(32_000);
  assert.equal(transactions.servers.size(), 0);
  transactions.receive(request, FAR);
  assert.equal(requests.length, 2);
});

test("[SI28] the refusal of an INVITE is retransmitted until its ACK, for at most 32 s", () => {
  for (const isAcknowledged of [true, false]) {
    const { system, sent, requests, transactions } = createBench();
    const request = makeRequest("INVITE", "z9hG4bK1");
    transactions.receive(request, FAR);
    transactions.servers.serve(request, FAR).respond(responseTo(request, 486));
    system.advance(1600);
    assert.deepEqual(times(sent), [0, 500, 1500]);
    if (isAcknowledged) {
      const acknowledgement = { ...makeRequest("ACK", "z9hG4bK1") };
      transactions.receive(acknowledgement, { ...FAR, host: "192.0.2.66" });
      system.advance(2000);
      assert.equal(sent.length, 4, "an ACK from elsewhere ends nothing");
      transactions.receive(acknowledgement, FAR);
      transactions.receive(acknowledgement, FAR);
    }
    system.advance(60_000);
    assert.equal(sent.length, isAcknowledged ? 4 : 11);
    assert.equal(requests.filter(({ method }) => method === "ACK").length, isAcknowledged ? 1 : 0);
    assert.equal(transactions.servers.size(), 0);
    assert.equal(system.pending(), 0);
  }
});

test("[SI29] after a 200 further copies of the INVITE are dropped and its ACK is passed up", () => {
  const { system, sent, requests, transactions } = createBench();
  const request = makeRequest("INVITE", "z9hG4bK1");
  transactions.receive(request, FAR);
  const transaction = transactions.servers.serve(request, FAR);
  transaction.respond(responseTo(request, 200, undefined, "b"));
  transactions.receive(request, FAR);
  assert.deepEqual(words(sent), ["200"]);
  transaction.respond(responseTo(request, 200, undefined, "b"));
  assert.deepEqual(words(sent), ["200", "200"]);
  transactions.receive(makeRequest("ACK", "z9hG4bK1"), FAR);
  transactions.receive(makeRequest("ACK", "z9hG4bK2"), FAR);
  assert.deepEqual(requests.map(({ method }) => method), ["INVITE", "ACK", "ACK"]);
  system.advance(32_000);
  assert.equal(transactions.servers.size(), 0);
});

test("[SI30] responses go to the request's source, or to the port its Via names", () => {
  const { sent, transactions } = createBench();
  const from: Peer = { ...FAR, port: 40_000 };
  for (const [via, port] of [
    ["SIP/2.0/UDP 10.0.0.1:5070;branch=z9hG4bK1;rport=40000;received=192.0.2.2", 40_000],
    ["SIP/2.0/UDP 10.0.0.1:5070;branch=z9hG4bK2;received=192.0.2.2", 5070],
    ["SIP/2.0/UDP 10.0.0.1;branch=z9hG4bK3;maddr=198.51.100.1", 5060],
  ] as const) {
    const request = makeRequest("BYE", "unused");
    request.headers.set("Via", via);
    transactions.servers.serve(request, from).respond(responseTo(request, 200));
    assert.deepEqual(sent.at(-1)!.peer, { ...FAR, port });
  }
});

/** Two transaction layers with a wire between them that does to each message what a test says. */
function createLossyCall(fates: ("pass" | "lose" | "double" | "late")[], status: number) {
  const system = createManualSystem();
  let index = 0;
  const answers: ServerTransaction[] = [];
  const outcome: string[] = [];
  const layer = (isCaller: boolean) => createTransactions({
    system,
    send: (_peer, bytes) => {
      const fate = fates[index++] ?? "pass";
      const deliver = () => {
        const parsed = parseMessage(bytes);
        if (parsed.kind === "message") (isCaller ? callee : caller).receive(parsed.message, FAR);
      };
      if (fate === "lose") return;
      system.after(fate === "late" ? 700 : 20, deliver);
      if (fate === "double") system.after(45, deliver);
    },
    onRequest: (request) => {
      if (request.method === "ACK") return;
      const transaction = callee.servers.serve(request, FAR);
      answers.push(transaction);
      system.after(100, () => transaction.respond(responseTo(request, status, undefined, "b")));
    },
  });
  const caller = layer(true);
  const callee = layer(false);
  const begin = (method: string) => {
    const request = makeRequest(method, "z9hG4bK1");
    assert.equal(parseCseq(request.headers.get("CSeq"))?.method, method);
    caller.clients.start(request, FAR, {
      response: (response) => {
        if (response.status >= 200) outcome.push(String(response.status));
      },
      failed: (why) => void outcome.push(why),
    });
  };
  return { system, begin, answers, outcome, caller, callee };
}

test("[SI31] with any loss, duplication or delay: one request, one outcome, nothing left over", () => {
  const fate = fc.constantFrom("pass", "lose", "double", "late");
  fc.assert(fc.property(
    fc.array(fate as fc.Arbitrary<"pass" | "lose" | "double" | "late">, { maxLength: 9 }),
    fc.constantFrom("INVITE", "BYE"),
    (fates, method) => {
      const bench = createLossyCall(fates, method === "INVITE" ? 486 : 200);
      bench.begin(method);
      bench.system.advance(200_000);
      const status = method === "INVITE" ? "486" : "200";
      assert.equal(bench.outcome.length, 1);
      assert.ok(bench.outcome[0] === status || bench.outcome[0] === "timeout");
      // Nine losses in a row can use up all tries; fewer cannot.
      if (fates.filter((it) => it === "lose").length < 3) assert.equal(bench.outcome[0], status);
      assert.ok(bench.answers.length <= 1);
      assert.equal(bench.caller.clients.size() + bench.callee.servers.size(), 0);
      assert.equal(bench.system.pending(), 0);
    },
  ), { numRuns: 300 });
});
