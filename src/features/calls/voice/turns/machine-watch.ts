// Detects whether an answering machine has answered a call whose model hears by itself, and when to
// leave the message. Uses the same signs as turn-taker.ts, from what the vendor reports about the
// speech. Used by realtime-session.ts.
import { MACHINE_BUDGET_MS, MACHINE_RUN_MS, MACHINE_SILENCE_MS } from "./answering-machines.ts";
import { soundsLikeMachine } from "./wording.ts";

export class MachineWatch {
  listener: "unknown" | "human" | "machine";
  isMessageLeft = false;
  readonly #detects: boolean;
  readonly #answeredMs: number;
  readonly #onJudged: (by: "human" | "machine" | "unknown") => void;
  #speechMs: number | null = null;

  constructor(args: {
    detects: boolean; answeredMs: number;
    onJudged(by: "human" | "machine" | "unknown"): void;
  }) {
    this.listener = args.detects ? "unknown" : "human";
    this.#answeredMs = args.answeredMs;
    this.#onJudged = args.onJudged;
    this.#detects = args.detects;
  }

  speechBegan(nowMs: number): void {
    this.#speechMs ??= nowMs;
  }

  speechEnded(nowMs: number): void {
    if (this.#speechMs !== null) this.#watchRun(nowMs);
    this.#speechMs = null;
    if (this.listener === "unknown") this.judge("human", nowMs);
  }

  receiveText(text: string, nowMs: number): void {
    if (this.#detects && soundsLikeMachine(text)) this.judge("machine", nowMs);
  }

  /** Time passes. */
  tick(nowMs: number): void {
    if (this.listener !== "unknown") return;
    this.#watchRun(nowMs);
    if (nowMs - this.#answeredMs >= MACHINE_BUDGET_MS) this.judge("unknown", nowMs);
  }

  judge(by: "human" | "machine" | "unknown", nowMs: number): void {
    const isLate = this.isMessageLeft || nowMs - this.#answeredMs > MACHINE_BUDGET_MS;
    const mayTurn = this.listener === "unknown" || (by === "machine" && !isLate);
    if (this.listener === "machine" || !mayTurn) return;
    this.listener = by === "machine" ? "machine" : "human";
    this.#onJudged(by);
  }

  /** Whether the message is due: the machine's greeting has been over for long enough. */
  isDue(nowMs: number, lastVoiceMs: number): boolean {
    return this.listener === "machine" && !this.isMessageLeft && this.#speechMs === null
      && nowMs - lastVoiceMs >= MACHINE_SILENCE_MS;
  }

  #watchRun(nowMs: number): void {
    if (this.#speechMs !== null && nowMs - this.#speechMs >= MACHINE_RUN_MS
      && this.listener === "unknown") this.judge("machine", nowMs);
  }
}
