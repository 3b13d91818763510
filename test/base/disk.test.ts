// What is said of a disk that cannot be written, by the codes of Node and SQLite.
import assert from "node:assert/strict";
import { constants } from "node:os";
import { test } from "node:test";
import { hasNoRoom, writingTo } from "#core/disk.ts";

test("[CL107] an exhausted quota counts as no room, whatever Node calls it", async () => {
  for (const code of ["UNKNOWN", "Unknown system error -122"]) {
    const error = Object.assign(new Error(code), { code, errno: -constants.errno.EDQUOT });
    assert.ok(hasNoRoom(error));
    await assert.rejects(writingTo("/kept", () => Promise.reject(error)), {
      message: "/kept cannot be written: the quota is used up",
    });
  }
});

test("[CL223] a folder whose files cannot be mapped, as SQLite must, is called that", async () => {
  const why = async (code: string): Promise<string> => writingTo("/kept", () =>
    Promise.reject(Object.assign(new Error("disk I/O error"), { code }))).catch(String);
  assert.match(await why("SQLITE_IOERR_SHMMAP"), /cannot be mapped.*: use a local disk$/);
  assert.match(await why("SQLITE_IOERR_FSYNC"), /written: input\/output error$/);
});
