// Every command the writer knows, by name. A feature's commands are named `<feature>.<use case>`.
import { accountCommands } from "./accounts.ts";
import { assistantCommands } from "./assistants.ts";
import { calendarCommands } from "./calendar.ts";
import { callCommands } from "./call-commands.ts";
import { conversationCommands } from "./conversation-commands.ts";
import type { Db } from "./database.ts";
import { eventCommands } from "./events.ts";
import { groupCommands } from "./groups.ts";
import { knowledgebaseCommands } from "./knowledgebases.ts";
import { toolCommands } from "./tools.ts";
import { turnCommands } from "./turns.ts";

export function createCommands(db: Db) {
  return {
    ...accountCommands(db),
    ...assistantCommands(db),
    ...calendarCommands(db),
    ...callCommands(db),
    ...conversationCommands(db),
    ...eventCommands(db),
    ...groupCommands(db),
    ...knowledgebaseCommands(db),
    ...toolCommands(db),
    ...turnCommands(db),
  };
}

export type AllCommands = ReturnType<typeof createCommands>;
