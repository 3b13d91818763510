// The command `parley openapi`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "#config/config.ts";
import { writingTo } from "#core/disk.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import type { Command } from "./command.ts";

export const openapiCommand: Command = {
  name: "openapi",
  takes: "",
  summary: "Print the OpenAPI document",
  options: {},
  run: async () => {
    // The document is made from mounted routes, so an app is assembled over an empty folder.
    const dataDir = await writingTo(
      tmpdir(), () => mkdtempSync(join(tmpdir(), "parley-openapi-")));
    try {
      const outcome = readConfig({ PARLEY_DATA_DIR: dataDir, PARLEY_LOG_LEVEL: "silent" });
      if (outcome.kind === "invalid") throw new Error(outcome.problems.join("; "));
      const { createApp } = await import("#app/app.ts");
      const { loadModels } = await import("#app/models.ts");
      const models = loadModels(outcome.config);
      if (models.kind === "invalid") throw new Error(models.problems.join("; "));
      const app = await createApp({
        config: outcome.config, models: models.entries, log: createLogger("silent"),
        system: createSystem(),
      });
      try {
        const value = app.openApi();
        return { value, text: JSON.stringify(value, null, 2) };
      } finally {
        await app.close();
      }
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
};
