// Composition root, the part about tools: the threads that call endpoints, and the features that
// send through them. Called by features.ts.
import type { Cluster } from "#cluster/cluster.ts";
import type { Assistants } from "#features/assistants/assistants.ts";
import { createCalcom } from "#features/calendar/calcom.ts";
import { createMcpSessions } from "#features/tools/mcp-sessions.ts";
import { createMcpServers } from "#features/tools/mcp.ts";
import { createToolFunctions } from "#features/tools/functions.ts";
import { createInvokeTool, type SendingOptions } from "#features/tools/invocation.ts";
import { createToolThreads } from "#features/tools/threads.ts";
import { createTools } from "#features/tools/tools.ts";
import { createTryTool } from "#features/tools/trials.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import type { Metrics } from "#core/metrics.ts";
import type { Plan } from "#core/price-lists.ts";
import type { SecretBox } from "#core/secrets.ts";
import type { System } from "#core/system.ts";
import type { Storage } from "#storage/storage.ts";

interface ToolingOptions {
  config: Config;
  storage: Pick<Storage, "tools" | "toolJournal">;
  box: SecretBox;
  planOf(accountId: number): Promise<Plan>;
  calcomKey: Assistants["calcomKey"];
  nodes: Pick<Cluster, "holds">;
  metrics: Metrics;
  system: System;
  log: Logger;
}

export function createTooling(options: ToolingOptions) {
  const { config, storage, box, planOf, calcomKey: keyOf, metrics, system, log } = options;
  const journal = storage.toolJournal;
  const threads = createToolThreads({
    allowPrivateNetworks: config.PARLEY_ALLOW_PRIVATE_NETWORKS,
    threadsMax: config.PARLEY_TOOL_THREADS_MAX, log,
  });
  const sendOnce: SendingOptions["send"] = async (request) => options.nodes.holds()
    ? await threads.send(request)
    : { kind: "failed", reason: "thread", sent: false };
  const mcpSessions = createMcpSessions({
    send: sendOnce, follow: (call) => mcpServers.follow(call), system, log,
  });
  const { send } = mcpSessions;
  const sending: SendingOptions = {
    send,
    system,
    log,
    observe: (outcome, seconds) => metrics.toolCall.observe({ outcome }, seconds),
  };
  const tools = createTools({
    store: storage.tools, box, system,
    toolsMax: async (accountId) => (await planOf(accountId)).tools,
  });
  const mcpServers = createMcpServers({ send, tools });
  const invokeTool = createInvokeTool({ ...sending, journal });
  return {
    tools,
    invokeTool,
    tryTool: createTryTool(sending),
    mcpServers,
    toolFunctions: createToolFunctions({ tools, invoke: invokeTool }),
    calcomFunctions: createCalcom({
      url: config.PARLEY_CALCOM_URL ?? "", send, journal, keyOf, system, log,
    }),
    closeToolThreads: async () => {
      await mcpSessions.close();
      await threads.close();
    },
  };
}
