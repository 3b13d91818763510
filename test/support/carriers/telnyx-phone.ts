// The media of a call at Telnyx, as its documentation describes it: a WebSocket to where the dial
// or the answer said, opened without authentication, with the `client_state` of that command in its
// start, then 20 ms of mu-law at a time both ways. Not checked against a live account.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { WebSocket } from "ws";
import { FRAME_MS, MulawFarEnd } from "./mulaw-far-end.ts";
import type { TelnyxCall } from "./telnyx-server.ts";

export class TelnyxPhone {
  readonly far: MulawFarEnd;
  /** Every message of the server. */
  readonly messages: Record<string, unknown>[] = [];
  readonly #call: TelnyxCall;
  readonly #socket: WebSocket;
  readonly #streamId = randomUUID();
  #sequence = 0;
  #chunk = 0;
  #pace: NodeJS.Timeout | null = null;

  private constructor(call: TelnyxCall) {
    this.#call = call;
    this.far = new MulawFarEnd((name) => this.#tell("mark", { mark: { name } }));
    this.#socket = new WebSocket(String(call.stream.stream_url));
    this.#socket.on("message", (data: Buffer, isBinary: boolean) => {
      assert.equal(isBinary, false);
      this.#take(JSON.parse(data.toString("utf8")) as Record<string, unknown>);
      this.far.changed();
    });
    this.#socket.on("close", (code: number, reason: Buffer) => {
      if (this.#pace) clearInterval(this.#pace);
      this.far.close(code, reason.toString());
    });
    // The close that follows reports the same.
    this.#socket.on("error", () => undefined);
  }

  /** The call is picked up; `clientState` may differ from the call's own. */
  static async talk(
    call: TelnyxCall, clientState: string | null = call.clientState,
  ): Promise<TelnyxPhone> {
    const phone = new TelnyxPhone(call);
    await new Promise((resolve) => phone.#socket.on("open", resolve));
    phone.#send({ event: "connected", version: "1.0.0" });
    phone.#tell("start", {
      start: {
        user_id: randomUUID(), call_control_id: call.id, call_session_id: randomUUID(),
        from: call.from, to: call.to, tags: [],
        ...(clientState === null ? {} : { client_state: clientState }),
        media_format: { encoding: "PCMU", sample_rate: 8000, channels: 1 },
      },
    });
    phone.#pace = setInterval(() => phone.#frame(), FRAME_MS);
    return phone;
  }

  press(digits: string): void {
    for (const digit of digits) {
      this.#tell("dtmf", { occurred_at: new Date().toISOString(), dtmf: { digit } });
    }
  }

  /** The telephone hangs up: sends what Telnyx sends over the stream then. */
  hangUp(): void {
    this.#tell("stop", { stop: { user_id: randomUUID(), call_control_id: this.#call.id } });
    this.#socket.close();
  }

  /** Resolves once closed; what the server sent before is there then. */
  closed(): Promise<void> {
    return this.far.until(() => this.far.closedWith !== null);
  }

  #send(message: object): void {
    if (!this.far.closedWith) this.#socket.send(JSON.stringify(message));
  }

  #tell(event: string, members: object): void {
    this.#sequence += 1;
    this.#send({
      event, sequence_number: String(this.#sequence), stream_id: this.#streamId, ...members,
    });
  }

  #frame(): void {
    this.#chunk += 1;
    this.#tell("media", {
      media: {
        track: "inbound", chunk: String(this.#chunk), timestamp: String(this.#chunk * FRAME_MS),
        payload: this.far.speak(),
      },
    });
  }

  #take(message: Record<string, unknown>): void {
    this.messages.push(message);
    if (message.event === "media") {
      return this.far.hear((message as { media: { payload: string } }).media.payload);
    }
    if (message.event === "mark") {
      return this.far.mark((message as { mark: { name: string } }).mark.name);
    }
    assert.equal(message.event, "clear");
    this.far.clear();
  }
}
