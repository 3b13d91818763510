// The port through which a turn calls tools. Implementations journal the call before it is sent.
import type { FunctionCall } from "#events/events.ts";
import type { ModelTool } from "#providers/models/port.ts";

export interface ToolCallRequest {
  /** Stable per call of the turn: the same id is the same effect. */
  callId: string;
  name: string;
  arguments: Record<string, unknown>;
}

export interface ToolBox {
  /** What the model may call; empty when the assistant has no tools. */
  readonly tools: ModelTool[];
  /**
   * Calls one tool and resolves to what the model and the client are told; failures of the endpoint
   * are results too. Rejects only when the signal aborts.
   */
  call(request: ToolCallRequest, signal: AbortSignal): Promise<FunctionCall["result"]>;
}

export const NO_TOOLS: ToolBox = {
  tools: [],
  call: (request) => Promise.resolve({ error: `There is no function named ${request.name}.` }),
};
