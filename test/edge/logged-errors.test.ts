// What is logged of requests that fail.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Fault, StorageFailure } from "#core/faults.ts";
import { toFault } from "#http/errors.ts";
import type { HttpRequest } from "#http/exchange.ts";

test("[ER150] a 500 with the contract's own text is logged with its cause", () => {
  const logged: unknown[] = [];
  const log = { error: ({ err }: { err: unknown }) => void logged.push(err) } as never;
  const cause = new Error("a defect");
  const failed = new Fault(500, "Failed to create document. Please try again.", { cause });
  assert.equal(toFault(failed, log, null), failed);
  toFault(new Fault(404, "Not found", { cause }), log, null);
  toFault(new Fault(501, "Not here"), log, null);
  assert.deepEqual(logged, [cause]);
});

test("[ER158] a request that storage refuses is logged in one line, with the cause and no stack", () => {
  const logged: object[] = [];
  const log = { error: (fields: object) => void logged.push(fields) } as never;
  const cause = new Error("connect ECONNREFUSED 192.0.2.1:5432");
  const { status } = toFault(new StorageFailure("the database is unreachable", cause), log, null);
  assert.equal(status, 503);
  assert.deepEqual(logged, [{
    error: "StorageFailure: the database is unreachable", cause: String(cause), req_id: undefined,
  }]);
});

test("[OP339] the line of a refused request has the error of every address that was tried", () => {
  const logged: { cause?: string }[] = [];
  const log = { error: (fields: object) => void logged.push(fields) } as never;
  const cause = new AggregateError(["::1", "127.0.0.1"].map((host) =>
    new Error(`connect ECONNREFUSED ${host}:5432`)));
  toFault(new StorageFailure("the database is unreachable", cause), log, null);
  assert.equal(logged[0]?.cause,
    "Error: connect ECONNREFUSED ::1:5432; Error: connect ECONNREFUSED 127.0.0.1:5432");
});

test("[ER754] who reads is not told that nothing can be stored", () => {
  const log = { error: () => undefined } as never;
  const textFor = (method: string): string => {
    const request = { method } as HttpRequest;
    return toFault(new StorageFailure("the database is unreachable"), log, request).message;
  };
  assert.equal(textFor("GET"), "The server cannot read its data at the moment.");
  assert.equal(textFor("PUT"), "The server cannot store anything at the moment.");
});
