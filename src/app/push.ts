// Composition root, push notifications to browsers. Called by features.ts.
import { createPush, type Push } from "#features/conversations/desk/push.ts";
import type { Config } from "#config/config.ts";
import type { System } from "#core/system.ts";
import { createOutbound } from "#outbound/request.ts";
import { createWebPush } from "#providers/push/web-push.ts";

type PushOptions = Omit<Parameters<typeof createPush>[0], "pusher"> & {
  config: Config; secret: string; system: System;
};

/** Push services require a contact: an `https:` URL or a mail address. */
function contactOf({ PARLEY_PUBLIC_URL: url, PARLEY_SMTP_FROM: from }: Config): string | null {
  if (url?.startsWith("https:")) return url;
  const mailbox = /[^\s<>]+@[^\s<>]+/.exec(from ?? "")?.[0];
  return mailbox === undefined ? null : `mailto:${mailbox}`;
}

export function createBrowserPush({ config, secret, ...options }: PushOptions): Push {
  const outbound = createOutbound({
    allowPrivateNetworks: config.PARLEY_ALLOW_PRIVATE_NETWORKS, userAgent: "Parley-Push",
  });
  const pusher = createWebPush({
    outbound, secret, contact: contactOf(config), system: options.system,
  });
  return createPush({ ...options, pusher });
}
