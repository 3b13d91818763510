// The real server in a folder of its own, with an account, an assistant and a model, for benchmarks
// that use its API over the wire.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { file, startServer, stop, type Started } from "./load.ts";

export interface Serving {
  started: Started;
  url: string;
  dataDir: string;
  key: string;
  /** The assistant's uuid. */
  assistant: string;
  /** `path` is below /api; throws unless it succeeded. */
  call(method: string, path: string, body?: object): Promise<Record<string, unknown>>;
  newConversation(): Promise<string>;
  close(): Promise<void>;
}

/** `probe`: flags of Node for the server. */
export async function serve(
  modelPort: number, env: Record<string, string>, probe: string[] = [],
): Promise<Serving> {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
  const settings = { PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "off", PARLEY_LOG_LEVEL: "info" };
  const made = execFileSync(process.execPath, [
    file("../scripts/parley.js"), "account", "create", "--name", "Bench", "--balance", "1000000",
    "--json",
  ], { env: settings, encoding: "utf8" });
  const { api_key: key } = JSON.parse(made) as { api_key: string };
  const started = await startServer({
    ...settings, PARLEY_PORT: "0", PARLEY_RATE_LIMITS: "off", PARLEY_MODEL_NAME: "scripted",
    PARLEY_MODEL_URL: `http://127.0.0.1:${modelPort}/v1`, PARLEY_SPEECH: "loopback",
    PARLEY_WEBRTC: "off", ...env,
  }, probe);
  const url = `http://127.0.0.1:${started.port}`;
  const call: Serving["call"] = async (method, path, body) => {
    const response = await fetch(`${url}/api${path}`, {
      method,
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  };
  const { data } = await call("POST", "/user/assistant", {
    name: "Bench", type: "inbound", mode: "pipeline", voice_id: 1, language_id: 1, llm_model_id: 1,
    timezone: "UTC", initial_message: "Hello", system_prompt: "You are helpful.",
  });
  const { uuid: assistant } = data as { uuid: string };
  return {
    started, url, dataDir, key, assistant, call,
    newConversation: async () => String(
      (await call("POST", "/conversations", { assistant_id: assistant })).conversation_id),
    close: async () => {
      await stop(started);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
