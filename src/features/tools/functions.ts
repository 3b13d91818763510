// An assistant's tools as functions of a turn. A tool is looked up again when it is called, and
// only then are its secrets opened.
import type { FunctionSource } from "#engine/functions.ts";
import { modelFunctionOf } from "./arguments.ts";
import type { InvocationContext, InvokeTool } from "./invocation.ts";
import type { Tools } from "./tools.ts";

/** A turn, and the tools of its assistant. */
interface Turn extends InvocationContext {
  assistant: { accountId: number; settings: { tool_ids: number[] } };
}

export function createToolFunctions(
  { tools, invoke }: { tools: Pick<Tools, "describe" | "find">; invoke: InvokeTool },
): (turn: Turn) => Promise<FunctionSource> {
  return async (turn) => {
    const { accountId, settings } = turn.assistant;
    const described = await Promise.all(
      settings.tool_ids.map((id) => tools.describe(accountId, id)));
    const byName = new Map(described
      .filter((tool) => tool !== null)
      .map((tool) => [tool.name, tool]));
    return {
      offered: [...byName.values()].map(modelFunctionOf),
      call: async ({ name, arguments: args }) => {
        const tool = await tools.find(accountId, byName.get(name)?.id ?? 0);
        if (!tool) return { error: "The tool was deleted." };
        return invoke(tool, args, turn);
      },
    };
  };
}
