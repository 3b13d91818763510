// The search commands of the `parley` program.
import { createSystem } from "#core/system.ts";
import { indexMessages } from "#features/conversations/desk/inbox.ts";
import { withStorage, type Command } from "./command.ts";

const rebuild: Command = {
  name: "search rebuild",
  takes: "",
  summary: "Read every message anew into the index of the inbox's search",
  options: {},
  run: ({ config }) => withStorage(config, async ({ inbox }) => {
    await inbox.forgetIndex();
    const messages = await indexMessages(inbox, createSystem());
    return { value: { messages }, text: `${messages} messages are found by their words` };
  }),
};

export const searchCommands: Command[] = [rebuild];
