// The dashboard's service worker: notifies people of conversations that wait while no page of the
// dashboard is visible. It stores nothing and answers no requests. Registered by data/push.ts.
const isDashboard = ({ url }) => new URL(url).pathname === "/";

const pages = async () =>
  (await self.clients.matchAll({ type: "window", includeUncontrolled: true })).filter(isDashboard);

/** People who were signed out elsewhere, or by expiry, must not be shown notifications. */
async function isSignedOut() {
  const answer = await fetch("/api/auth").catch(() => null);
  return answer?.ok === true && !(await answer.json()).signed_in;
}

async function show({ title, body, conversation_id: id, for_session: isForSession = false }) {
  if (isForSession && await isSignedOut()) {
    // The push service then reports the subscription as gone, and the server deletes it.
    await (await self.registration.pushManager.getSubscription())?.unsubscribe();
    return;
  }
  // People who look at the dashboard see there who waits.
  if ((await pages()).some(({ visibilityState }) => visibilityState === "visible")) return;
  await self.registration.showNotification(title, { body, tag: id, data: id });
}

async function open(id) {
  const [page] = await pages();
  if (!page) {
    await self.clients.openWindow(`/#/inbox/${id}`);
    return;
  }
  page.postMessage({ conversation_id: id });
  await page.focus();
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("push", (event) => event.waitUntil(show(event.data.json())));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});
