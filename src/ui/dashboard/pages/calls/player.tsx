// The recording of a call: played by the browser's own element, over a timeline of who spoke when.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { duration } from "#ui/dashboard/kit/format.ts";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";
import { speakerOf, type Entry } from "./call-state.ts";

/** The upper and the lower lane: left and right in the recording. */
const SIDES = ["human", "bot"] as const;
/** A colleague is recorded on the assistant's side. */
const laneOf = ({ sender }: Entry): string => sender === "human" ? "human" : "bot";
const SPEEDS = [1, 1.25, 1.5, 2];

interface PlayerState {
  audio: { current: HTMLAudioElement | null };
  isPlaying: boolean;
  /** Something was played or sought: before that, the playback position means nothing. */
  hasBegun: boolean;
  seconds: number;
  length: number;
  toggle(): void;
  seek(seconds: number): void;
  playFrom(seconds: number): void;
  /** Handlers for the audio element's events. */
  on: {
    onPlay(): void; onPause(): void; onTimeUpdate(): void; onSeeked(): void;
    onDurationChange(): void;
  };
}

/** `lengthGuess`: used until the recording itself reports its length. */
export function usePlayer(lengthGuess: number): PlayerState {
  const audio = useRef<HTMLAudioElement>(null);
  const [isPlaying, setPlaying] = useState(false);
  const [hasBegun, setBegun] = useState(false);
  const [seconds, setSeconds] = useState(0);
  const [length, setLength] = useState(Math.max(1, lengthGuess));
  useEffect(() => {
    if (!isPlaying) return;
    // The element itself reports its time only four times a second.
    let frame = requestAnimationFrame(function draw() {
      setSeconds(audio.current?.currentTime ?? 0);
      frame = requestAnimationFrame(draw);
    });
    return () => cancelAnimationFrame(frame);
  }, [isPlaying]);
  const actions = useMemo(() => {
    // Any refusal of `play` is reported by the element's own `error` event, too.
    const play = (): void => void audio.current?.play().catch(() => undefined);
    const seek = (to: number): void => {
      setBegun(true);
      setSeconds(to);
      if (audio.current) audio.current.currentTime = to;
    };
    const read = (): void => setSeconds(audio.current?.currentTime ?? 0);
    return {
      seek,
      playFrom: (to: number) => {
        seek(to);
        play();
      },
      toggle: () => audio.current?.paused ? play() : audio.current?.pause(),
      on: {
        onPlay: () => {
          setBegun(true);
          setPlaying(true);
        },
        onPause: () => setPlaying(false),
        onTimeUpdate: read,
        onSeeked: read,
        onDurationChange: () => {
          const seconds = audio.current?.duration ?? 0;
          if (Number.isFinite(seconds) && seconds > 0) setLength(seconds);
        },
      },
    };
  }, []);
  return { audio, isPlaying, hasBegun, seconds, length, ...actions };
}

export function Player({ player, url, entries, renew }: {
  player: PlayerState; url: string; entries: readonly Entry[]; renew(): void;
}) {
  const [isBroken, setBroken] = useState(false);
  const [speed, setSpeed] = useState(1);
  const { audio, isPlaying, seconds, length, on } = player;
  useEffect(() => {
    if (audio.current) audio.current.playbackRate = speed;
  }, [speed]);
  return (
    <div class="calls-player">
      <audio ref={audio} src={url} preload="metadata" {...on} onError={() => setBroken(true)} />
      {isBroken && (
        <Notice tone="bad">
          <span>The recording cannot be played. Its link may have expired.</span>
          <button type="button" class="quiet" onClick={renew}>Try again</button>
        </Notice>
      )}
      <Timeline player={player} entries={entries} />
      <div class="actions">
        <Button kind="main" icon={isPlaying ? "pause" : "play"} onClick={player.toggle}>
          {isPlaying ? "Pause" : "Play"}
        </Button>
        <span class="calls-time">{duration(seconds)} / {duration(length)}</span>
        <label class="calls-speed">
          Speed
          <select
            value={String(speed)}
            onChange={(event) => setSpeed(Number(event.currentTarget.value))}
          >
            {SPEEDS.map((value) => <option key={value} value={String(value)}>{value}×</option>)}
          </select>
        </label>
        <a class="button quiet" href={url} download>Download</a>
      </div>
    </div>
  );
}

function Timeline({ player: { seconds, length, seek }, entries }: {
  player: PlayerState; entries: readonly Entry[];
}) {
  const percent = (value: number): string => `${Math.min(100, (value / length) * 100).toFixed(3)}%`;
  const lanes = useMemo(() => SIDES.map((sender) => (
    <span key={sender} class={`calls-lane ${sender}`}>
      {entries.filter((entry) => laneOf(entry) === sender).map((entry) => (
        <i
          key={entry.number}
          style={{
            left: percent(entry.start_ms / 1000),
            width: percent(Math.max(0, entry.end_ms - entry.start_ms) / 1000),
          }}
        />
      ))}
    </span>
  )), [entries, length]);
  return (
    <div class="calls-timeline">
      <span class="calls-legend">
        {SIDES.map((sender) => <span key={sender} class={sender}>{speakerOf(sender)}</span>)}
      </span>
      <div>
        <div aria-hidden="true">{lanes}</div>
        <input
          type="range" aria-label="Position in the recording" min={0} max={length} step={0.1}
          value={Math.min(seconds, length)}
          aria-valuetext={t(`${duration(seconds)} of ${duration(length)}`)}
          onInput={(event) => seek(event.currentTarget.valueAsNumber)}
        />
      </div>
    </div>
  );
}
