// Push notifications for this browser while no page of the dashboard is open: it subscribes at the
// push service of the browser's maker, and the server sends there. Used by pages/inbox/alerts.tsx
// and app.tsx.
import type { Parley } from "#client/client.ts";
import { unwrap } from "./session.tsx";

const WORKER = "/push-worker.js";

/** Signing out waits no longer than this. */
const BEGINNING_MS_MAX = 3000;
/** Resolves once no subscription is being made. */
let beginning: Promise<unknown> = Promise.resolve();
/** Whether this browser is subscribed, as far as this page knows. */
let isSubscribed = false;

export const isPushed = (): boolean => isSubscribed;

const canPush = (): boolean => "serviceWorker" in navigator && "PushManager" in globalThis;

async function subscribe(manager: PushManager, publicKey: string): Promise<PushSubscription> {
  const options = { userVisibleOnly: true, applicationServerKey: publicKey };
  try {
    return await manager.subscribe(options);
  } catch (error) {
    // The browser is still subscribed with the previous key.
    if ((error as DOMException).name !== "InvalidStateError") throw error;
    await (await manager.getSubscription())?.unsubscribe();
    return manager.subscribe(options);
  }
}

/** False where the browser cannot, or its push service is not reached. Idempotent. */
export function beginPush(api: Parley): Promise<boolean> {
  const begun = begin(api);
  beginning = begun.catch(() => undefined);
  return begun;
}

async function begin(api: Parley): Promise<boolean> {
  if (!canPush()) return false;
  const { public_key: key } = await unwrap(api.GET("/user/push"));
  await navigator.serviceWorker.register(WORKER);
  const { pushManager } = await navigator.serviceWorker.ready;
  const subscription = await subscribe(pushManager, key).catch(() => null);
  if (!subscription) return false;
  const { endpoint = "", keys: { p256dh = "", auth = "" } = {} } = subscription.toJSON();
  const body = { endpoint, keys: { p256dh, auth } };
  await unwrap(api.POST("/user/push/subscriptions", { body }));
  isSubscribed = true;
  return true;
}

/** People who sign out get no more notifications. */
export async function endPush(api: Parley): Promise<void> {
  // A subscription that is just being made would otherwise remain.
  await Promise.race([beginning, new Promise((resolve) => setTimeout(resolve, BEGINNING_MS_MAX))]);
  isSubscribed = false;
  if (!canPush()) return;
  const registration = await navigator.serviceWorker.getRegistration(WORKER);
  const subscription = await registration?.pushManager.getSubscription();
  if (!subscription) return;
  const { endpoint } = subscription;
  await unwrap(api.DELETE("/user/push/subscriptions", { body: { endpoint } }));
  await subscription.unsubscribe();
}

/** Opens the conversation of a notification that somebody clicked. */
export function followClicks(): () => void {
  if (!canPush()) return () => undefined;
  const open = ({ data }: MessageEvent<{ conversation_id: string }>): void => {
    location.hash = `/inbox/${data.conversation_id}`;
  };
  navigator.serviceWorker.addEventListener("message", open);
  return () => navigator.serviceWorker.removeEventListener("message", open);
}
