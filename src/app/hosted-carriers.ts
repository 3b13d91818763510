// Composition of hosted carriers: the carrier accounts that the settings give the operator. Called
// by app.ts.
import { shareOffers } from "#cluster/offers.ts";
import type { Wire } from "#cluster/wire.ts";
import { createHosted, type Hosted } from "#features/calls/hosted/hosted.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { HostedAccount } from "#core/hosted-accounts.ts";
import type { HostedCalls } from "#providers/carriers/hosted/port.ts";

export type HostedLines = ReadonlyMap<HostedAccount, Hosted>;

/** PARLEY_TWILIO_URL distinguishes SignalWire from Twilio: only SignalWire's path ends this way. */
const isSignalWire = (url: string): boolean => new URL(url).pathname.endsWith("/laml");

/**
 * Null where the operator has no such account; config.ts makes sure its settings are complete. A
 * carrier's code is loaded only where there is an account.
 */
async function accountsOf(config: Config, system: System): Promise<(HostedCalls | null)[]> {
  const {
    PARLEY_TWILIO_URL: twilioUrl, PARLEY_TWILIO_ACCOUNT_SID: accountSid,
    PARLEY_TWILIO_AUTH_TOKEN: twilioToken, PARLEY_TWILIO_SIGNING_KEY: signingKey,
    PARLEY_TELNYX_URL: telnyxUrl, PARLEY_TELNYX_API_KEY: apiKey,
    PARLEY_TELNYX_PUBLIC_KEY: publicKey, PARLEY_TELNYX_CONNECTION_ID: connectionId,
    PARLEY_PLIVO_URL: plivoUrl, PARLEY_PLIVO_AUTH_ID: authId, PARLEY_PLIVO_AUTH_TOKEN: plivoToken,
    PARLEY_VONAGE_URL: vonageUrl, PARLEY_VONAGE_APPLICATION_ID: applicationId,
    PARLEY_VONAGE_PRIVATE_KEY: privateKey, PARLEY_VONAGE_SIGNATURE_SECRET: signatureSecret,
  } = config;
  return [
    twilioUrl && accountSid && twilioToken
      ? (await import("#providers/carriers/hosted/twilio-calls.ts")).createTwilioCalls({
        name: isSignalWire(twilioUrl) ? "signalwire" : "twilio",
        url: twilioUrl, accountSid, authToken: twilioToken, signingKey,
      })
      : null,
    telnyxUrl && apiKey && publicKey && connectionId
      ? (await import("#providers/carriers/hosted/telnyx-calls.ts")).createTelnyxCalls({
        url: telnyxUrl, apiKey, publicKey, connectionId, system,
      })
      : null,
    plivoUrl && authId && plivoToken
      ? (await import("#providers/carriers/hosted/plivo-calls.ts")).createPlivoCalls({
        url: plivoUrl, authId, authToken: plivoToken,
      })
      : null,
    vonageUrl && applicationId && privateKey && signatureSecret
      ? (await import("#providers/carriers/hosted/vonage-calls.ts")).createVonageCalls({
        url: vonageUrl, applicationId, privateKey, signatureSecret, system,
      })
      : null,
  ];
}

async function asteriskOf(
  config: Config, system: System, log: Logger,
): Promise<HostedCalls | null> {
  const {
    PARLEY_ASTERISK_URL: url, PARLEY_ASTERISK_USER: user, PARLEY_ASTERISK_PASSWORD: password,
    PARLEY_ASTERISK_ENDPOINT: endpoint, PARLEY_ASTERISK_APP: app, PARLEY_ASTERISK_MEDIA: media,
  } = config;
  if (url === null || user === null || password === null || endpoint === null) return null;
  const { createAsteriskCalls } = await import("#providers/carriers/hosted/asterisk/calls.ts");
  return createAsteriskCalls({ url, user, password, app, endpoint, media, system, log });
}

interface HostedOptions {
  config: Config;
  system: System;
  log: Logger;
}

export async function loadCarriers({ config, system, log }: HostedOptions): Promise<HostedCalls[]> {
  const found = [await asteriskOf(config, system, log), ...await accountsOf(config, system)];
  return found.filter((carrier) => carrier !== null);
}

export function createHostedLines(
  carriers: HostedCalls[], { config, wire, system, log }: HostedOptions & { wire: Wire | null },
): HostedLines {
  const offers = wire ? shareOffers({ wire, log }) : undefined;
  const nodeUrl = config.PARLEY_NODE_URL;
  const publicUrl = config.PARLEY_PUBLIC_URL ?? nodeUrl;
  const lines = new Map<HostedAccount, Hosted>();
  for (const carrier of carriers) {
    const { account, vendor } = carrier;
    if (account === "asterisk") {
      // Nothing from this carrier arrives at our public address.
      lines.set(account, createHosted({ carrier, publicUrl: "", offers, system, log }));
      continue;
    }
    if (publicUrl === null) {
      log.warn(`PARLEY_PUBLIC_URL is not set: no calls over ${vendor}, which could not reach this server`);
      continue;
    }
    if (!(nodeUrl ?? publicUrl).startsWith("https:")) {
      log.warn(`${nodeUrl ? "PARLEY_NODE_URL" : "PARLEY_PUBLIC_URL"} is not https: ${vendor} requires https for the audio of calls`);
    }
    lines.set(account, createHosted({ carrier, publicUrl, nodeUrl, offers, system, log }));
  }
  return lines;
}
