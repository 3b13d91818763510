// The service worker of the dashboard: shows who waits while no page of it is in sight. It keeps
// nothing and answers no request. Registered by data/push.ts.
const isDashboard = ({ url }) => new URL(url).pathname === "/";

const pages = async () =>
  (await self.clients.matchAll({ type: "window", includeUncontrolled: true })).filter(isDashboard);

/** Whoever was signed out elsewhere, or is out by time, is not shown who writes. */
async function isSignedOut() {
  const answer = await fetch("/api/auth").catch(() => null);
  return answer?.ok === true && !(await answer.json()).signed_in;
}

async function show({ title, body, conversation_id: id, for_session: isForSession = false }) {
  if (isForSession && await isSignedOut()) {
    // The maker then says that the browser is gone, and the server forgets it.
    await (await self.registration.pushManager.getSubscription())?.unsubscribe();
    return;
  }
  // Whoever looks at the dashboard sees who waits there.
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
