// The current calls over one Asterisk: keeps their state, handles Asterisk's events, and opens and
// closes rooms when calls are answered or end. Asterisk reports a channel's events once, and only
// while we are connected, so missed ones are found by polling its list of channels, after every
// connect and from time to time. Used by calls.ts.
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
  /** Concurrent calls, including incoming ones that still ring. */
  callsMax: 5000,
  /** How often the list of channels is polled while connected. */
  lookMs: 60_000,
  /** Grace period for an unknown channel: the event that announces it may be in flight. */
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
  /** Incoming channels that are neither answered nor refused yet. */
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

  /** The channel id for a call to place. */
  channelOf(token: string): string {
    return this.#names.of("call", token);
  }

  add(line: Omit<Line, "room" | "isHandedOn">): Line {
    this.#offered.delete(line.callId);
    return this.#lines.add({ ...line, room: null, isHandedOn: false });
  }

  /** Forgets an offer that was refused. */
  settled(callId: string): void {
    this.#offered.delete(callId);
  }

  find(callId: string): Line | null {
    return this.#lines.ofCall(callId);
  }

  /** Forgets the call, whatever happens to its channel; resolves when its room is closed. */
  async forget(line: Line): Promise<void> {
    this.#lines.forget(line);
    await line.room?.close();
  }

  /** Resolves once the call's audio is connected to us. Rejects with a ProviderError. */
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

  // Events of Asterisk

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
    // The call is left from before a restart, or was reported as refused.
    if (!line) return this.#hangUp(channel.id);
    line.isAnswered = true;
    this.#publish(own.token, channel.id, { kind: "answered" });
    this.giveRoom(line).catch((error: unknown) => {
      // Most likely the call is over by now; if not, it would have no audio.
      this.#options.log.warn({ err: error, carrier_call_id: channel.id }, "could not set up the audio of a call");
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

  /** When an inbound call ends, leaving the application is the only event. */
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
      this.#options.log.warn({ err: error, channel: channelId }, "could not hang up a channel");
    });
  }

  // Events that were missed

  #look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#compare()
      .catch((error: unknown) => {
        if (!this.#isClosed) this.#options.log.warn({ err: error }, "could not list Asterisk's calls");
      })
      .finally(() => (this.#isLooking = false));
  }

  async #compare(): Promise<void> {
    const { ari, system } = this.#options;
    const lines = this.#lines.all().filter(({ isPlaced }) => isPlaced);
    const [channels, bridges] = await Promise.all([ari.channels(), ari.bridges()]);
    const states = new Map(channels.map(({ id, state }) => [id, state]));
    for (const line of lines) {
      // The call may have ended while the list was fetched.
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

  /** Events may be published again here, so that a hangup that failed is retried. */
  #compareLine(line: Line, state: string | undefined): void {
    if (state === undefined) this.#ended(line, CAUSE_UNKNOWN);
    else if (state === "Up") this.#publish(line.token, line.callId, { kind: "answered" });
    else if (state === "Ringing") this.#publish(line.token, line.callId, { kind: "ringing" });
  }

  #isLeftRoom(bridgeId: string): boolean {
    const own = this.#names.read(bridgeId);
    return own?.part === "room" && !this.#lines.ofToken(own.token)?.room;
  }

  /** A channel left from before a restart, or forgotten during set-up: nobody will ever use it. */
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
