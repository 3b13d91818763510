// A telephone that goes without a word, and then the server does: nobody pays for the time in which
// nobody was heard to be there. A real server process, Debian's sipp without sound, and SIGKILL.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { accountEvent } from "#support/account-events.ts";
import { auditBeside } from "#support/databases/beside.ts";
import { freePorts } from "#support/free-ports.ts";
import { startProcess } from "#support/process.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import { trunkBody, TRUNKS } from "#support/sip/sip-trunks.ts";
import { noSipp, startSipp } from "#support/sip/sipp.ts";

/** Five seconds until silence is noticed, a second's grain, five from beat to beat. */
const BILLED_SECONDS_MAX = 11;
const SILENT_MS = 17_000;
const NUMBER = "+14155550177";

test("[CR56] killed after a caller went silent: the silence is not billed", { skip: noSipp(), timeout: 180_000 }, async (t) => {
  const folder = testDataDir();
  const sipPort = await freePorts();
  const env = {
    PARLEY_SPEECH: "loopback", PARLEY_SIP_PORT: String(sipPort), PARLEY_SIP_HOST: "127.0.0.1",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  };
  let server = await startProcess(folder, env);
  const { key } = server;
  t.after(async () => {
    const ended = once(server.process, "exit");
    server.process.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true });
  });
  const ask = async (path: string, body?: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`${server.url}/api${path}`, {
      method: body ? "POST" : "GET",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return await response.json() as Record<string, unknown>;
  };
  const trunk = await ask(TRUNKS, trunkBody({
    phone_number: NUMBER, sip_address: "127.0.0.1", country_code: "US",
    inbound_authorization_type: "ip", allowed_inbound_ips: ["127.0.0.1"],
  })) as { data: { id: number } };
  await ask("/user/assistant", assistantBody({
    type: "inbound", status: "active", phone_number_id: trunk.data.id, post_call_evaluation: false,
  }));
  const phone = await startSipp({
    scenario: "load", to: sipPort, numbers: [NUMBER], calls: 1, pauseMs: 80_000, timeoutS: 90,
    keys: { rtp_port: String(await freePorts()) },
  });
  t.after(() => phone.stop());
  const { call_id: id } = await accountEvent({ url: server.url, key }, ({ type, status }) =>
    type === "call_status_changed" && status === "in-progress");
  await delay(SILENT_MS);
  const exited = once(server.process, "exit");
  server.process.kill("SIGKILL");
  await exited;
  server = await startProcess(folder, env);
  assert.deepEqual((await auditBeside(folder)).problems, []);
  const call = await ask(`/user/calls/${Number(id)}`);
  assert.deepEqual([call.status, call.end_reason], ["failed", "server_restarted"]);
  assert.ok(Number(call.duration) <= BILLED_SECONDS_MAX, `${String(call.duration)} s`);
  assert.ok(Number(call.total_cost) <= (BILLED_SECONDS_MAX * 0.1) / 60, `${String(call.total_cost)}`);
});
