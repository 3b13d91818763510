// The search commands of the `parley` program.
import { createSystem } from "#core/system.ts";
import { indexMessages } from "#features/conversations/desk/inbox.ts";
import { withStorage, type Command } from "./command.ts";

const rebuild: Command = {
  name: "search rebuild",
  takes: "",
  summary: "Rebuild the search index of the inbox from all messages",
  options: {},
  run: ({ config }) => withStorage(config, async ({ inbox }) => {
    await inbox.forgetIndex();
    const messages = await indexMessages(inbox, createSystem());
    return { value: { messages }, text: `${messages} messages indexed` };
  }),
};

export const searchCommands: Command[] = [rebuild];
