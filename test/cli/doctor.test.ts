// What `parley doctor` says of a data folder that other programs use.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { databasePath, openForInspection, openWriter } from "#storage/engines/sqlite/database.ts";
import { isOverPostgres } from "#support/engines.ts";
import { parley } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";

test("[CL191] doctor says when a long-running reader lets the database's log grow", { skip: isOverPostgres }, async (context) => {
  const dir = testDataDir();
  const db = openWriter(dir, { migrate: true });
  const reader = openForInspection(databasePath(dir));
  context.after(() => {
    reader.close();
    db.close();
    rmSync(dir, { recursive: true });
  });
  assert.match((await parley(dir, ["doctor"])).out, /^ok +database +sound, ledger correct$/m);
  reader.exec("BEGIN");
  reader.prepare("SELECT count(*) FROM accounts").get();
  db.exec("CREATE TABLE ballast (bytes BLOB); INSERT INTO ballast VALUES (zeroblob(70 << 20))");
  assert.match((await parley(dir, ["doctor"])).out,
    /^ok +database +sound, ledger correct; its log has grown to [78]\d MiB: a long-running reader keeps it from shrinking$/m);
});
