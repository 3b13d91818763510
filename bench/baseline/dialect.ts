// The part of the OpenAI dialect that the baselines read.

interface Chunk {
  choices: { delta?: { content?: string } }[];
}

/** The text that a line of the model's stream brings; empty: none. */
export function textOf(line: string): string {
  if (!line.startsWith("data: ") || line === "data: [DONE]") return "";
  return (JSON.parse(line.slice(6)) as Chunk).choices[0]?.delta?.content ?? "";
}
