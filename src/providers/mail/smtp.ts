// Mail over SMTP by nodemailer, which is loaded with the first mail. The server is the operator's
// own, so no guard of outbound requests stands before it. Opened by app/mail.ts.
import { domainToASCII } from "node:url";
import type { SMTPPoolOptions, SMTPPoolSentMessageInfo, Transporter } from "nodemailer";
import { ProviderError } from "#core/faults.ts";
import { bareHost } from "#core/networks.ts";
import { wait, type System } from "#core/system.ts";
import { createPlaces, createShares } from "#core/turns.ts";
import type { Mail, Mailer } from "./port.ts";

interface SmtpOptions {
  /** `smtp://` or `smtps://`, with user and password where the server wants them. */
  url: string;
  from: string;
  system: System;
}

const CONNECT_MS = 10_000;
/** Servers scan a mail before they confirm it. */
const SILENCE_MS = 90_000;
const CONNECTIONS_MAX = 3;
/** Mails that are sent or wait to be tried again; one more is refused. */
const MAILS_MAX = 500;
/** Greylisting servers take a mail from a stranger only after some minutes, usually five. */
const RETRY_MS = [5000, 30_000, 120_000, 300_000];

const isHere = (host: string): boolean => /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(host);

/**
 * A password crosses a network encrypted or not at all. On the loopback interface nobody can listen
 * in, and mail servers there come with self-signed certificates.
 */
function optionsOf(text: string): SMTPPoolOptions & { pool: true } {
  const url = new URL(text);
  const secure = url.protocol === "smtps:";
  const user = decodeURIComponent(url.username);
  const isLocal = isHere(url.hostname);
  return {
    pool: true, maxConnections: CONNECTIONS_MAX, secure,
    host: bareHost(url.hostname),
    port: url.port === "" ? (secure ? 465 : 587) : Number(url.port),
    requireTLS: !secure && user !== "" && !isLocal,
    tls: { rejectUnauthorized: !isLocal },
    ...user === "" ? {} : { auth: { user, pass: decodeURIComponent(url.password) } },
    connectionTimeout: CONNECT_MS, greetingTimeout: CONNECT_MS, socketTimeout: SILENCE_MS,
    disableFileAccess: true, disableUrlAccess: true,
  };
}

/** A single address with its name; nodemailer would parse a string as a list, split at commas. */
function addressOf(text: string): { name: string; address: string } {
  const [, quoted, plain = "", address = text] =
    /^\s*(?:"((?:[^"\\]|\\.)*)"|(.*?))\s*<([^<>]+)>$/.exec(text) ?? [];
  return { name: quoted?.replace(/\\(.)/g, "$1") ?? plain, address };
}

interface SmtpError extends Error {
  code?: string;
  /** The code of the error beneath, which says more than that of nodemailer. */
  originalCode?: string;
  responseCode?: number;
}

/** Errors of the connection, worth a retry unless the mail had been handed over already. */
const PASSING = new Set(["ECONNECTION", "ETIMEDOUT", "ESOCKET", "EDNS", "ECONNRESET", "EPROTOCOL"]);

/** The server's certificate is not trusted, or its port speaks no TLS: the settings are wrong. */
const LASTING = /^(?:CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|ERR_TLS_CERT|ERR_SSL_WRONG_VERSION)/;

/** Retryable before the mail was handed over, and when the server says the failure is temporary. */
function mailError(error: SmtpError, isHandedOver: boolean): ProviderError {
  const { code = "", originalCode = code, responseCode } = error;
  const retryable = responseCode === undefined
    ? PASSING.has(code) && !LASTING.test(originalCode) && !isHandedOver
    : responseCode >= 400 && responseCode < 500;
  const said = responseCode === undefined ? originalCode : String(responseCode);
  return new ProviderError(`the mail server refused a mail (${said})`, {
    retryable, cause: error,
  });
}

type Transport = Transporter<SMTPPoolSentMessageInfo>;

export function createSmtpMailer({ url, from, system }: SmtpOptions): Mailer {
  const ending = new AbortController();
  const underWay = createShares(MAILS_MAX);
  const places = createPlaces(CONNECTIONS_MAX);
  let opening: Promise<Transport> | null = null;
  /** Ids of mails whose last byte was sent to the server. */
  const handedOver = new Set<string>();
  const open = async (): Promise<Transport> => {
    const transport = (await import("nodemailer")).createTransport(optionsOf(url));
    return transport.use("stream", ({ data: { messageId }, message }, done) => {
      message.processFunc((read) => read.once("end", () => handedOver.add(String(messageId))));
      done();
    });
  };

  const attempt = async (whole: Omit<Mail, "accountId"> & { id: string }): Promise<void> => {
    const { id, to, replyTo, ...mail } = whole;
    const messageId = `<${id}>`;
    try {
      // What could not be loaded, as when too many files are open, is loaded for the next mail.
      opening ??= open().catch((error: unknown) => {
        opening = null;
        throw error;
      });
      const transport = await opening;
      await transport.sendMail({
        ...mail, messageId, from: addressOf(from), to: addressOf(to),
        headers: { "Auto-Submitted": "auto-generated" },
        ...replyTo === undefined ? {} : { replyTo: addressOf(replyTo) },
      });
    } catch (error) {
      throw mailError(error as SmtpError, handedOver.has(messageId));
    } finally {
      handedOver.delete(messageId);
    }
  };
  const persist = async ({ accountId, ...mail }: Mail & { id: string }): Promise<void> => {
    const tried = (): Promise<void> => places.take(accountId, () => attempt(mail));
    for (const delayMs of RETRY_MS) {
      try {
        return await tried();
      } catch (error) {
        if (!(error as ProviderError).retryable) throw error;
        await wait(system, delayMs, ending.signal);
        if (ending.signal.aborted) throw error;
      }
    }
    await tried();
  };
  return {
    isSetUp: true,
    send: async (mail) => {
      if (ending.signal.aborted || !underWay.hasRoom(mail.accountId)) {
        throw new ProviderError("too many mails are waiting to be sent", { retryable: true });
      }
      underWay.take(mail.accountId, 1);
      try {
        const domain = addressOf(from).address.split("@").at(-1) ?? "";
        await persist({ id: `${system.uuid()}@${domainToASCII(domain)}`, ...mail });
      } finally {
        underWay.take(mail.accountId, -1);
      }
    },
    close: async () => {
      ending.abort();
      (await opening)?.close();
    },
  };
}
