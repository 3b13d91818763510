// The calls over one Asterisk while they last: which there are, what Asterisk reports of them, and
// what has to be done by itself when one is picked up or over. Asterisk reports a channel's events
// once, and only while we listen: what was missed is found by looking at its list of channels,
// after every connection and from time to time. Used by calls.ts.
import type { Logger } from "#core/logger.ts";
import { wait, type System, type Timer } from "#core/system.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import type { Ari, AriChannel } from "./ari.ts";
import { createLines, isIn, namesOf, type Line } from "./lines.ts";
import { causeOf, readAriEvent } from "./events.ts";
import type { Link } from "./link.ts";
import { callIsOver, openRoom } from "./room.ts";
import { TRANSFER } from "./transfer.ts";
import type { ReportHandlers } from "#providers/carriers/hosted/port.ts";

const ASTERISK_LIMITS = {
  /** Calls at a time, those that ring here among them. */
  callsMax: 5000,
  /** How often the list of channels is looked at while all seems well. */
  lookMs: 60_000,
  /** A channel nobody knows is hung up after that: its arrival may just be on its way to us. */
  settleMs: 500,
} as const;

export interface SwitchboardOptions {
  ari: Ari;
  link: Link;
  app: string;
  /** Entry of websocket_client.conf. */
  media: string;
  system: System;
  log: Logger;
  callLimits?: Partial<Record<keyof typeof ASTERISK_LIMITS, number>>;
}

/** The cause of a channel that has vanished: unless it was answered, the call has failed. */
const CAUSE_UNKNOWN = 0;

export class Switchboard {
  readonly #options: SwitchboardOptions;
  readonly #limits: Record<keyof typeof ASTERISK_LIMITS, number>;
  readonly #names: ReturnType<typeof namesOf>;
  readonly #lines = createLines();
  /** Channels that came in and are neither answered nor refused. */
  readonly #offered = new Set<string>();
  #handlers: ReportHandlers | null = null;
  #timer: Timer | null = null;
  #isLooking = false;
  #isClosed = false;

  constructor(options: SwitchboardOptions) {
    this.#options = options;
    this.#limits = { ...ASTERISK_LIMITS, ...options.callLimits };
    this.#names = namesOf(options.app);
  }

  /** Once. */
  open(handlers: ReportHandlers): void {
    const { link, system } = this.#options;
    this.#handlers = handlers;
    link.open({ opened: () => this.#look(), text: (text) => this.#receive(text) });
    this.#timer = system.every(this.#limits.lookMs, () => {
      if (link.isOpen) this.#look();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#options.link.close();
  }

  get isFull(): boolean {
    return this.#offered.size + this.#lines.size() >= this.#limits.callsMax;
  }

  /** The name of the channel of a call to come. */
  channelOf(token: string): string {
    return this.#names.of("call", token);
  }

  add(line: Omit<Line, "room" | "isHandedOn">): Line {
    this.#offered.delete(line.callId);
    return this.#lines.add({ ...line, room: null, isHandedOn: false });
  }

  /** It was refused. */
  settled(callId: string): void {
    this.#offered.delete(callId);
  }

  find(callId: string): Line | null {
    return this.#lines.ofCall(callId);
  }

  /** Whatever becomes of its channel; resolves when its room is gone. */
  async forget(line: Line): Promise<void> {
    this.#lines.forget(line);
    await line.room?.close();
  }

  /** Resolves once the call is heard here. Rejects with a ProviderError. */
  async giveRoom(line: Line): Promise<void> {
    const { ari, media, system, log } = this.#options;
    if (this.#lines.ofCall(line.callId) !== line) throw callIsOver();
    const { callId, token, parameters } = line;
    line.room = openRoom({
      ari, system, log, callId, parameters, client: media,
      bridgeId: this.#names.of("room", token), mediaId: this.#names.of("media", token),
    });
    await line.room.ready;
  }

  // What Asterisk reports

  #receive(text: string): void {
    const event = readAriEvent(text);
    if (event === null) return;
    switch (event.kind) {
      case "entered": return this.#entered(event.channel);
      case "ringing":
      case "up": return this.#changed(event.kind, event.channelId);
      case "destroyed": return this.#destroyed(event.channelId, event.cause);
      case "left": return this.#left(event.channelId);
      case "replaced": return this.#options.link.yield();
    }
  }

  #entered(channel: AriChannel): void {
    const own = this.#names.read(channel.id);
    if (!own) return this.#arrived(channel);
    const line = this.#lines.ofToken(own.token);
    if (own.part === "media") {
      if (line?.room) return line.room.mediaEntered();
      return this.#hangUp(channel.id);
    }
    // The call is of a server before this one, or was reported as refused.
    if (!line) return this.#hangUp(channel.id);
    line.isAnswered = true;
    this.#publish(own.token, channel.id, { kind: "answered" });
    this.giveRoom(line).catch((error: unknown) => {
      // It is over by now, most likely; if not, nobody could be heard in it.
      this.#options.log.warn({ err: error, carrier_call_id: channel.id }, "a call has no sound");
      this.#hangUp(channel.id);
    });
  }

  #arrived({ id, caller, dialplan }: AriChannel): void {
    if (this.#offered.has(id) || this.#lines.ofCall(id)) return;
    if (this.isFull) return this.#hangUp(id, "busy");
    this.#offered.add(id);
    this.#handlers?.offer({
      callId: id, from: caller.number || null, to: dialplan.exten,
      isOffer: true, events: [], reply: null,
    });
  }

  #changed(kind: "ringing" | "up", channelId: string): void {
    const own = this.#names.read(channelId);
    if (own?.part !== "call") return;
    if (kind === "ringing") return this.#publish(own.token, channelId, { kind });
    const line = this.#lines.ofCall(channelId);
    if (line) line.isAnswered = true;
  }

  #destroyed(channelId: string, cause: number): void {
    this.#offered.delete(channelId);
    const own = this.#names.read(channelId);
    if (own?.part === "media") return this.#lines.ofToken(own.token)?.room?.mediaLost();
    const line = this.#lines.ofCall(channelId);
    if (line) this.#ended(line, cause);
  }

  /** Leaving the application is all that is reported of an inbound call that ends. */
  #left(channelId: string): void {
    this.#offered.delete(channelId);
    const line = this.#lines.ofCall(channelId);
    if (line && !line.isHandedOn) this.#ended(line, CAUSE_UNKNOWN);
  }

  #ended(line: Line, cause: number): void {
    const { token, callId, isAnswered } = line;
    this.#publish(token, callId, { kind: "ended", cause: causeOf(cause, isAnswered) });
    void this.forget(line);
  }

  #publish(token: string, callId: string, event: LegEvent): void {
    this.#handlers?.report(token, {
      callId, from: null, to: null, isOffer: false, events: [event], reply: null,
    });
  }

  #hangUp(channelId: string, reason?: "busy"): void {
    this.#options.ari.hangUp(channelId, reason).catch((error: unknown) => {
      if (this.#isClosed) return;
      this.#options.log.warn({ err: error, channel: channelId }, "a channel could not be hung up");
    });
  }

  // What it did not report

  #look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#compare()
      .catch((error: unknown) => {
        if (!this.#isClosed) this.#options.log.warn({ err: error }, "Asterisk's calls cannot be listed");
      })
      .finally(() => (this.#isLooking = false));
  }

  async #compare(): Promise<void> {
    const { ari, system } = this.#options;
    const lines = this.#lines.all().filter(({ isPlaced }) => isPlaced);
    const [channels, bridges] = await Promise.all([ari.channels(), ari.bridges()]);
    const states = new Map(channels.map(({ id, state }) => [id, state]));
    for (const line of lines) {
      // It may have ended while the list was made.
      const isKept = this.#lines.ofCall(line.callId) === line;
      if (isKept) this.#compareLine(line, states.get(line.callId));
    }
    for (const callId of [...this.#offered]) if (!states.has(callId)) this.#offered.delete(callId);
    const left = channels.filter((channel) => this.#isLeft(channel));
    const rooms = bridges.filter((id) => this.#isLeftRoom(id));
    if (left.length === 0 && rooms.length === 0) return;
    await wait(system, this.#limits.settleMs);
    if (this.#isClosed) return;
    for (const channel of left) if (this.#isLeft(channel)) this.#hangUp(channel.id);
    await Promise.all(rooms.filter((id) => this.#isLeftRoom(id)).map((id) => ari.dropBridge(id)));
  }

  /** What has been reported may be reported again: whoever could not hang up tries again. */
  #compareLine(line: Line, state: string | undefined): void {
    if (state === undefined) this.#ended(line, CAUSE_UNKNOWN);
    else if (state === "Up") this.#publish(line.token, line.callId, { kind: "answered" });
    else if (state === "Ringing") this.#publish(line.token, line.callId, { kind: "ringing" });
  }

  #isLeftRoom(bridgeId: string): boolean {
    const own = this.#names.read(bridgeId);
    return own?.part === "room" && !this.#lines.ofToken(own.token)?.room;
  }

  /** A channel of a server before this one, or forgotten half-way: nobody will ever talk in it. */
  #isLeft(channel: AriChannel): boolean {
    const { app } = this.#options;
    const own = this.#names.read(channel.id);
    if (!own) {
      const isKnown = this.#offered.has(channel.id) || this.#lines.ofCall(channel.id) !== null;
      return isIn(app, channel) && !isKnown;
    }
    const line = this.#lines.ofToken(own.token);
    if (own.part === "media") return !line?.room;
    const { context, exten } = channel.dialplan;
    return !line && !(context === app && exten === TRANSFER.extension);
  }
}
