// Compares what a page heard with what the server sent: where speech that was sent whole broke off,
// and how long after a question the answer began. For bench/webrtc.ts.

const FRAME_MS = 10;
/** A level below this counts as silence beside speech. */
const QUIET_DB = -48;
const LOUD_DB = -42;
/** Sounds nearer to each other are one utterance. */
const UTTERANCE_PAUSE_MS = 800;
const UTTERANCE_MS_MIN = 400;
/** How far heard sound may run ahead of or behind sent sound, within an utterance. */
const DRIFT_MS = 600;
const GAP_MS_MIN = 40;
/** A step that repeats or skips time costs extra, so that the alignment prefers even time. */
const STEP_DB = 4;

export interface Utterance {
  fromMs: number;
  toMs: number;
}

interface Gaps {
  /** Longer than 40 ms. */
  count: number;
  longestMs: number;
}

/** The level of each 10 ms, in dB below full scale. */
export function levelsOf(pcm: Int16Array, rate: number): number[] {
  const size = (rate * FRAME_MS) / 1000;
  return Array.from({ length: Math.floor(pcm.length / size) }, (_, frame) => {
    let sum = 0;
    for (let at = frame * size; at < (frame + 1) * size; at += 1) sum += (pcm[at] ?? 0) ** 2;
    return Math.max(-90, 10 * Math.log10(sum / size / 32_768 ** 2));
  });
}

export function utterancesIn(levels: number[]): Utterance[] {
  const found: Utterance[] = [];
  for (const [frame, level] of levels.entries()) {
    if (level < LOUD_DB) continue;
    const [atMs, last] = [frame * FRAME_MS, found.at(-1)];
    if (last && atMs - last.toMs < UTTERANCE_PAUSE_MS) last.toMs = atMs + FRAME_MS;
    else found.push({ fromMs: atMs, toMs: atMs + FRAME_MS });
  }
  return found.filter(({ fromMs, toMs }) => toMs - fromMs >= UTTERANCE_MS_MIN);
}

export const cut = (levels: number[], { fromMs, toMs }: Utterance): number[] =>
  levels.slice(fromMs / FRAME_MS, toMs / FRAME_MS);

/** Maps each heard frame to a sent one (dynamic time warping in a band). */
function align(sent: number[], heard: number[]): number[] {
  const band = DRIFT_MS / FRAME_MS;
  const width = sent.length + 1;
  const cost = new Float64Array(width * (heard.length + 1)).fill(Number.POSITIVE_INFINITY);
  cost[0] = 0;
  const at = (row: number, column: number): number =>
    cost[row * width + column] ?? Number.POSITIVE_INFINITY;
  const before = (row: number, column: number): [number, number, number] =>
    [at(row - 1, column - 1), at(row - 1, column) + STEP_DB, at(row, column - 1) + STEP_DB];
  for (let row = 1; row <= heard.length; row += 1) {
    const middle = Math.round((row * sent.length) / heard.length);
    const last = Math.min(sent.length, middle + band);
    for (let column = Math.max(1, middle - band); column <= last; column += 1) {
      const difference = Math.abs((heard[row - 1] ?? 0) - (sent[column - 1] ?? 0));
      cost[row * width + column] = difference + Math.min(...before(row, column));
    }
  }
  const path = new Array<number>(heard.length).fill(0);
  let [row, column] = [heard.length, sent.length];
  while (row > 0 && column > 0) {
    path[row - 1] = column - 1;
    const [both, heardAlone, sentAlone] = before(row, column);
    const least = Math.min(both, heardAlone, sentAlone);
    if (least !== sentAlone) row -= 1;
    if (least !== heardAlone) column -= 1;
  }
  return path;
}

/** Silence that was heard within an utterance and not sent with it. */
export function gapsIn(sent: number[], heard: number[]): Gaps {
  const path = align(sent, heard);
  const gaps: number[] = [];
  let from = 0;
  for (let frame = 0; frame <= heard.length; frame += 1) {
    if ((heard[frame] ?? 0) < QUIET_DB) continue;
    const span = new Set(path.slice(from, frame));
    const silent = [...span].filter((index) => (sent[index] ?? 0) < QUIET_DB).length;
    const gapMs = (frame - from - silent) * FRAME_MS;
    if (gapMs > GAP_MS_MIN) gaps.push(gapMs);
    from = frame + 1;
  }
  return { count: gaps.length, longestMs: Math.max(0, ...gaps) };
}
