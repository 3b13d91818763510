// The commands that clients send on a stream's socket, and their answers. Called by the sockets of
// accounts, conversations and calls.
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { toFault } from "#http/errors.ts";
import { parseJsonObject } from "#http/validation.ts";
import { parsePosition } from "./frames.ts";
import type { SocketSession } from "./streams.ts";

export type Answer = [type: string, members: object];

/** A command's `request_id`, repeated in its answer or refusal so that the sender can match it. */
const echoOf = ({ request_id: id }: Record<string, unknown>): { request_id?: string } =>
  typeof id === "string" && id.length <= LIMITS.requestIdCharsMax ? { request_id: id } : {};

/** Never rejects: what a command threw is answered as an `error` frame. */
export async function obey(
  session: Pick<SocketSession, "answer">, text: string, log: Logger,
  run: (given: Record<string, unknown>) => Promise<Answer>,
): Promise<void> {
  let echo = {};
  try {
    const given = parseJsonObject(Buffer.from(text));
    echo = echoOf(given);
    const [type, members] = await run(given);
    session.answer(type, { ...members, ...echo });
  } catch (error) {
    const { status, message, errors, retryAfterS } = toFault(error, log, null);
    session.answer("error", {
      status,
      error: message,
      ...(errors ? { errors } : {}),
      ...(retryAfterS === undefined ? {} : { retry_after: Math.ceil(retryAfterS) }),
      ...echo,
    });
  }
}

export async function resume(
  session: Pick<SocketSession, "resume">, after: string | undefined,
): Promise<Answer> {
  const position = parsePosition(after ?? "");
  if (!position) throw new Fault(422, "The value of after is not a position of this stream.");
  await session.resume(position);
  return ["resumed", {}];
}
