// Alerts when somebody begins to wait: a sound and a browser notification, each by choice. The
// notification comes by push where possible, else from the page.
import { useEffect, useRef, useState } from "preact/hooks";
import { beginPush, endPush, followClicks, isPushed } from "#ui/dashboard/data/push.ts";
import { useMay } from "#ui/dashboard/data/rights.tsx";
import { useApi } from "#ui/dashboard/data/session.tsx";
import { Toggle } from "#ui/dashboard/kit/controls.tsx";
import { useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { onDevice } from "#ui/dashboard/kit/kept.ts";

const SOUND = "parley.inbox.sound";
const NOTICE = "parley.inbox.notice";
const BEEP_HZ = 660;
const BEEP_S = 0.25;
const CLOSED_AFTER_MS = 1000;

const isOn = (name: string): boolean => onDevice.getItem(name) === "on";
const keep = (name: string, on: boolean): void => onDevice.setItem(name, on ? "on" : "off");
const mayNotify = (): boolean => "Notification" in globalThis && Notification.permission === "granted";

function beep(): void {
  const audio = new AudioContext();
  const tone = audio.createOscillator();
  const gain = audio.createGain();
  tone.frequency.value = BEEP_HZ;
  gain.gain.setValueAtTime(0.15, audio.currentTime);
  gain.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + BEEP_S);
  tone.connect(gain).connect(audio.destination);
  // Browsers play nothing on a page that nobody has touched yet: there the tone never ends.
  setTimeout(() => void audio.close(), CLOSED_AFTER_MS);
  tone.start();
  tone.stop(audio.currentTime + BEEP_S);
}

/** `waiting`: how many wait; undefined: nobody knows yet. */
export function useAlerts(waiting: number | undefined): void {
  const before = useRef<number | undefined>(undefined);
  const subscribe = useSubscribing();
  useEffect(() => {
    if (isOn(NOTICE) && mayNotify()) void subscribe();
    return followClicks();
  }, []);
  useEffect(() => {
    const grew = before.current !== undefined && (waiting ?? 0) > before.current;
    if (waiting !== undefined) before.current = waiting;
    if (!grew) return;
    if (isOn(SOUND)) beep();
    if (isOn(NOTICE) && mayNotify() && document.hidden && !isPushed()) {
      const notice = new Notification("Somebody is waiting for a person", { tag: "parley-inbox" });
      notice.onclick = () => focus();
    }
  }, [waiting]);
}

/**
 * Renews the subscription, which the push service may have ended; resolves to whether it succeeded.
 */
function useSubscribing(): () => Promise<boolean> {
  const api = useApi();
  const may = useMay();
  // Without the server or the service the page itself notifies, as long as it is open.
  return async () => may("answer") === null && beginPush(api).catch(() => false);
}

export function AlertChoices() {
  const subscribe = useSubscribing();
  const api = useApi();
  const toasts = useToasts();
  const [sound, setSound] = useState(isOn(SOUND));
  const [notice, setNotice] = useState(isOn(NOTICE) && mayNotify());
  const [pushed, setPushed] = useState(isPushed());
  const ask = async (wanted: boolean): Promise<void> => {
    const on = wanted && "Notification" in globalThis
      && await Notification.requestPermission() === "granted";
    keep(NOTICE, on);
    setNotice(on);
    if (!on) await endPush(api);
    setPushed(on && await subscribe());
  };
  return (
    <details class="inbox-alerts">
      <summary>Notifications</summary>
      <Toggle
        label="Sound when somebody is waiting" value={sound}
        onInput={(on) => {
          keep(SOUND, on);
          setSound(on);
        }}
      />
      <Toggle
        label="Browser notification" value={notice}
        hint={pushed
          ? "Even when no dashboard page is open"
          : "While a page of the dashboard is open"}
        onInput={(on) => void ask(on).catch(toasts.fail)}
      />
    </details>
  );
}
