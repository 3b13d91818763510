// WS /conversations/{uuid}/socket: watch and talk over one connection. Commands: send, resume,
// stop, ping; everything else that happens arrives as the stream's own frames.
import { Type, type Static } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { OneOf } from "#core/schema.ts";
import { isUuid } from "#core/values.ts";
import { API_ROOT, originFault } from "#http/api.ts";
import type { SocketRoute } from "#http/exchange.ts";
import { readIdempotencyKey, compileValidation, parseQuery } from "#http/validation.ts";
import { obey, resume, type Answer } from "#realtime/commands.ts";
import { readPosition, type SocketSession, type Streams } from "#realtime/streams.ts";
import type { Access } from "./access.ts";
import type { Conversations } from "./conversations.ts";
import { MESSAGE_FIELD, STOP } from "./routes.ts";
import { replyBody, STORED_BODY } from "./wire.ts";
import { conversationNotFound } from "./outcomes.ts";

const COMMAND = Type.Object({
  type: OneOf(["send", "resume", "stop", "ping"]),
  /** Echoed in the answer, so that clients can match answers to commands. */
  request_id: Type.Optional(Type.String({ maxLength: LIMITS.requestIdCharsMax })),
  message: Type.Optional(Type.Unknown()),
  idempotency_key: Type.Optional(Type.String()),
  after: Type.Optional(Type.String()),
  ...STOP.properties,
});
const validateCommand = compileValidation(COMMAND);
const validateMessage = compileValidation(Type.Object({ message: MESSAGE_FIELD }));

type Command = Static<typeof COMMAND>;

interface ConversationSocketOptions {
  conversations: Conversations;
  access: Access;
  streams: Streams;
  log: Logger;
}

export function conversationSocket(options: ConversationSocketOptions): SocketRoute {
  const { conversations, access, streams, log } = options;
  return {
    pattern: `${API_ROOT}/conversations/:uuid/socket`,
    errorShape: "conversation",
    accept: async (http) => {
      const uuid = (http.params[0] ?? "").toLowerCase();
      if (!isUuid(uuid)) throw conversationNotFound();
      const conversation = await conversations.get(uuid);
      if (!await access.originAllowedFor(uuid, http)) throw originFault();
      const position = readPosition(parseQuery(http.query).after, http.headers["last-event-id"]);
      const open = await streams.openSocket({ ...access.streamOf(conversation), position });
      return (socket) => {
        const session = open(socket);
        return {
          message: (text) => void obey(session, text, log, (given) =>
            run(options, uuid, session, validateCommand(given))),
          drained: () => session.drained(),
          closed: () => session.closed(),
        };
      };
    },
  };
}

async function run(
  { conversations, access }: ConversationSocketOptions,
  uuid: string,
  session: SocketSession,
  command: Command,
): Promise<Answer> {
  switch (command.type) {
    case "ping":
      return ["pong", {}];
    case "stop":
      return ["stop_result", { stopped: await conversations.stop(uuid, command.turn_id) }];
    case "resume":
      return resume(session, command.after);
    default: {
      const { message } = validateMessage({ message: command.message });
      const idempotencyKey = readIdempotencyKey(command.idempotency_key);
      await access.assertMaySend(uuid);
      const sent = await access.uncountedIf503(
        uuid, conversations.send({ uuid, text: message, idempotencyKey }));
      if (sent.kind === "stored") return ["send_result", STORED_BODY];
      const result = await sent.result;
      return ["send_result", { turn_id: sent.turnId, ...replyBody(result) }];
    }
  }
}
