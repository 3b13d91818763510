// Every command the writer knows, by name. A feature's commands are named `<feature>.<use case>`.
import { accountCommands } from "./accounts.ts";
import { assistantCommands } from "./assistants.ts";
import { calendarCommands } from "./calendar.ts";
import { callCommands } from "./call-commands.ts";
import { campaignCommands } from "./campaign-commands.ts";
import { conversationCommands } from "./conversation-commands.ts";
import { evaluationCommands } from "./conversation-evaluations.ts";
import type { Db } from "./engines/sqlite/database.ts";
import { eventCommands } from "./events.ts";
import { groupCommands } from "./groups.ts";
import { knowledgebaseCommands } from "./knowledgebases.ts";
import { leadCommands } from "./lead-commands.ts";
import { phoneNumberCommands } from "./phone-number-commands.ts";
import { sipTrunkCommands } from "./sip-trunks.ts";
import { toolCommands } from "./tools.ts";
import { turnCommands } from "./turns.ts";
import { webhookCommands } from "./webhooks.ts";

export function createCommands(db: Db) {
  return {
    ...accountCommands(db),
    ...assistantCommands(db),
    ...calendarCommands(db),
    ...callCommands(db),
    ...campaignCommands(db),
    ...conversationCommands(db),
    ...evaluationCommands(db),
    ...eventCommands(db),
    ...groupCommands(db),
    ...knowledgebaseCommands(db),
    ...leadCommands(db),
    ...phoneNumberCommands(db),
    ...sipTrunkCommands(db),
    ...toolCommands(db),
    ...turnCommands(db),
    ...webhookCommands(db),
  };
}

export type AllCommands = ReturnType<typeof createCommands>;
