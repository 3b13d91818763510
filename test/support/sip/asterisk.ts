// Asterisk as the telephone system at the far end: a registrar and a trunk on 127.0.0.1, started in
// the foreground with a configuration of the test's own in a temporary folder, and controlled and
// watched over its manager interface. Tests skip if it is not installed. Debian 12 has no Asterisk;
// asterisk-root.sh makes a folder with that of Debian sid, which ASTERISK_ROOT names.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync,
} from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { freePorts } from "#support/free-ports.ts";
import { createWaiting } from "#support/waiting.ts";

const MODULES = [
  "app_chanspy", "app_dial", "app_echo", "app_milliwatt", "app_mixmonitor", "app_playback",
  "app_read", "app_senddtmf", "app_userevent", "bridge_native_rtp", "bridge_simple",
  "bridge_softmix", "chan_pjsip", "codec_alaw", "codec_ulaw", "format_wav", "func_callerid",
  "func_channel", "func_cut", "func_groupcount", "func_periodic_hook", "func_uri",
  "pbx_config", "res_clioriginate", "res_crypto", "res_pjproject", "res_pjsip",
  "res_pjsip_authenticator_digest", "res_pjsip_caller_id", "res_pjsip_dtmf_info",
  "res_pjsip_endpoint_identifier_user", "res_pjsip_history", "res_pjsip_nat",
  "res_pjsip_outbound_authenticator_digest", "res_pjsip_pubsub", "res_pjsip_refer",
  "res_pjsip_registrar", "res_pjsip_rfc3326", "res_pjsip_sdp_rtp", "res_pjsip_session",
  "res_rtp_asterisk", "res_sorcery_astdb", "res_sorcery_config", "res_sorcery_memory", "res_srtp",
  "res_timing_timerfd",
];
/** Further modules, for calls controlled over its REST interface. */
const ARI_MODULES = [
  "app_stasis", "chan_websocket", "codec_resample", "func_dialplan", "res_ari", "res_ari_bridges",
  "res_ari_channels", "res_ari_events", "res_ari_model", "res_http_websocket", "res_stasis",
  "res_stasis_answer", "res_stasis_playback", "res_stasis_recording", "res_stasis_snoop",
  "res_websocket_client",
];
const SECRET = "manager";
const RTP_PORTS = 100;
const READY = "Asterisk Ready";

interface Installation {
  /** The command that is run, and what comes before Asterisk's own arguments. */
  command: string;
  before: string[];
  modules: string;
  data: string;
}

function findInstallation(): Installation | null {
  // Empty: the folder could not be made.
  const root = process.env.ASTERISK_ROOT || undefined;
  const places = root === undefined
    ? (process.env.PATH ?? "").split(delimiter).concat("/usr/sbin")
    : [join(root, "usr/sbin")];
  const command = places.map((place) => join(place, "asterisk")).find((file) => existsSync(file));
  const libraries = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib"]
    .map((path) => join(root ?? "/", path));
  const modules = libraries.map((path) => join(path, "asterisk/modules"))
    .find((path) => existsSync(join(path, "chan_pjsip.so")));
  if (command === undefined || modules === undefined) return null;
  const data = join(root ?? "/", "usr/share/asterisk");
  if (root === undefined) return { command, before: [], modules, data };
  // Asterisk gets its own loader and libraries: it was built against others than the system's.
  const loader = ["lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"]
    .map((path) => join(root, path)).find((path) => existsSync(path));
  if (loader === undefined) return null;
  return {
    command: loader, before: ["--library-path", libraries.join(":"), command], modules, data,
  };
}

/** Why tests with Asterisk cannot run here; false: they can. */
export const noAsterisk = (): string | false =>
  findInstallation() === null
    ? "Asterisk is neither installed nor in the folder ASTERISK_ROOT names" : false;

/** A message of the manager interface; its names are Asterisk's. */
export type AsteriskEvent = Record<string, string>;

export interface Asterisk {
  port: number;
  tlsPort: number | null;
  /** The address of ARI; null without it. */
  ariUrl: string | null;
  /** Sounds it plays (`name.wav` in it is `FOLDER/name`) and recordings it makes. */
  folder: string;
  /** Resolves to the event with these values and that number, from 0, once it has come. */
  saw(name: string, values?: AsteriskEvent, number?: number): Promise<AsteriskEvent>;
  /** How many such events there have been. */
  count(name: string, values?: AsteriskEvent): number;
  /** Runs a command of its console; resolves to the output. */
  command(text: string): Promise<string>;
  /**
   * Calls the line, and once it has answered sends it to the extension; `more`: further fields.
   * Rejects when it does not answer.
   */
  originate(line: string, extension: string, caller: string, more?: AsteriskEvent): Promise<void>;
  /** Samples of a WAV it has written. */
  recording(name: string): Int16Array;
  /** Ends it as a power cut would, and starts it again without state, on the same ports. */
  restart(): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface AsteriskOptions {
  /** Sections of pjsip.conf besides the transports; `FOLDER` stands for the folder, `SIP_PORT`
   * for its own port. */
  pjsip: string;
  /** The context `far` in extensions.conf, and contexts after it; `FOLDER` as above. */
  extensions: string;
  sounds?: Record<string, Buffer>;
  /** PEM files; with them Asterisk listens for TLS. */
  tls?: { key: string; cert: string };
  /** Its REST interface, and where its one client for media (named as the user) connects to. */
  ari?: { user: string; password: string; mediaUrl: string };
  /** Receives what it prints on its console. */
  print?(text: string): void;
}

/** The lines of an extension with these steps, one after the other. */
export const extension = (name: string, ...steps: string[]): string =>
  steps.map((step, at) => `exten => ${name},${at === 0 ? "1" : "n"},${step}\n`).join("");

export const LINE_PASSWORD = "correct horse";

/** The sections of a line as an administrator sets it up, each with further settings. */
export const line = (
  name: string, endpoint: string[] = [], aor: string[] = [], auth: string[] = [],
): string => [
  `[${name}]`, "type=endpoint", "context=far", `auth=${name}`, `aors=${name}`,
  "identify_by=username,auth_username", "media_address=127.0.0.1",
  "bind_rtp_to_media_address=yes", "disallow=all",
  ...(endpoint.some((one) => one.startsWith("allow=")) ? [] : ["allow=ulaw,alaw"]),
  ...(endpoint.some((one) => one.startsWith("direct_media=")) ? [] : ["direct_media=no"]),
  ...endpoint,
  `[${name}]`, "type=auth", `username=${name}`, `password=${LINE_PASSWORD}`, ...auth,
  `[${name}]`, "type=aor", "max_contacts=1", "remove_existing=yes", "qualify_frequency=60",
  "minimum_expiration=1", ...aor, "",
].join("\n");

export async function startAsterisk(options: AsteriskOptions): Promise<Asterisk> {
  const installation = findInstallation();
  if (!installation) throw new Error(String(noAsterisk()));
  const folder = mkdtempSync(join(tmpdir(), "parley-asterisk-"));
  const port = await freePorts();
  const tlsPort = options.tls ? await freePorts() : null;
  const managerPort = await freePorts();
  const ariPort = options.ari ? await freePorts() : null;
  const firstRtpPort = await freePorts();
  const configuration = configure(
    { ...options, folder, port, tlsPort, managerPort, ariPort, firstRtpPort }, installation);
  // Asterisk requires `keys` below its folder of keys; nothing is read from it.
  for (const name of ["conf", "run", "lib", "keys", "agi", "spool", "log"]) {
    mkdirSync(join(folder, name));
  }
  for (const [name, text] of Object.entries(configuration)) {
    writeFileSync(join(folder, "conf", name), text);
  }
  for (const [name, wav] of Object.entries(options.sounds ?? {})) {
    writeFileSync(join(folder, `${name}.wav`), wav);
  }
  const events = createEvents();
  let running = await run(installation, folder, managerPort, events, options.print);
  let closing: Promise<void> | null = null;
  const end = async (): Promise<void> => {
    await running.end("SIGTERM");
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    port,
    tlsPort,
    ariUrl: ariPort === null ? null : `http://127.0.0.1:${ariPort}`,
    folder,
    saw: events.saw,
    count: events.count,
    command: async (text) => (await running.act({ Action: "Command", Command: text })).Output ?? "",
    originate: async (name, to, caller, more = {}) => {
      const { ActionID = "", Response: said, Message: why } = await running.act({
        Action: "Originate", Channel: `PJSIP/${name}`, Context: "far", Exten: to, Priority: "1",
        CallerID: caller, Async: "true", ...more,
      });
      if (said !== "Success") throw new Error(`Asterisk does not call ${name}: ${why}`);
      const { Response: became } = await events.saw("OriginateResponse", { ActionID });
      if (became !== "Success") throw new Error(`Asterisk's call to ${name} was not answered`);
    },
    recording: (name) => {
      const wav = readFileSync(join(folder, `${name}.wav`));
      const length = (wav.length - 44) >> 1;
      return Int16Array.from({ length }, (_, at) => wav.readInt16LE(44 + 2 * at));
    },
    restart: async () => {
      await running.end("SIGKILL");
      for (const name of readdirSync(join(folder, "lib"))) rmSync(join(folder, "lib", name));
      rmSync(join(folder, "run"), { recursive: true });
      mkdirSync(join(folder, "run"));
      running = await run(installation, folder, managerPort, events, options.print);
    },
    close: () => (closing ??= end()),
  };
}

interface Places extends AsteriskOptions {
  folder: string;
  port: number;
  tlsPort: number | null;
  managerPort: number;
  ariPort: number | null;
  firstRtpPort: number;
}

/** The configuration for ARI and chan_websocket, by name of file. */
function configureAri({ ari, ariPort }: Places): Record<string, string> {
  if (!ari || ariPort === null) return {};
  const { user, password, mediaUrl } = ari;
  return {
    "http.conf": `[general]\nenabled=yes\nbindaddr=127.0.0.1\nbindport=${ariPort}\n`,
    "ari.conf": `[general]\nenabled=yes\n[${user}]\ntype=user\npassword=${password}\n`,
    "websocket_client.conf": [
      `[${user}]`, "type=websocket_client", `uri=${mediaUrl}`, "protocols=media",
      "connection_type=per_call_config", "connection_timeout=500", "reconnect_interval=500",
      "reconnect_attempts=1", "tls_enabled=no", "",
    ].join("\n"),
  };
}

/** Its configuration files, by name. */
function configure(places: Places, { modules, data }: Installation): Record<string, string> {
  const { folder, port, tlsPort, managerPort, tls, firstRtpPort } = places;
  const fill = (text: string): string =>
    text.replaceAll("FOLDER", folder).replaceAll("SIP_PORT", String(port));
  const loaded = places.ari ? [...MODULES, ...ARI_MODULES] : MODULES;
  return {
    ...configureAri(places),
    "asterisk.conf": [
      "[directories]", `astetcdir => ${folder}/conf`, `astmoddir => ${modules}`,
      `astdatadir => ${data}`, `astvarlibdir => ${folder}/lib`, `astdbdir => ${folder}/lib`,
      `astkeydir => ${folder}`, `astagidir => ${folder}/agi`, `astspooldir => ${folder}/spool`,
      `astrundir => ${folder}/run`, `astlogdir => ${folder}/log`,
      "[options]", "verbose = 3", "nocolor = yes", "",
    ].join("\n"),
    "modules.conf": `[modules]\nautoload=no\n${loaded.map((name) => `load = ${name}.so\n`).join("")}`,
    "logger.conf": "[general]\n[logfiles]\nconsole => notice,warning,error,verbose\n",
    "rtp.conf": `[general]\nrtpstart=${firstRtpPort}\nrtpend=${firstRtpPort + RTP_PORTS}\n`,
    "manager.conf": [
      "[general]", "enabled=yes", "bindaddr=127.0.0.1", `port=${managerPort}`,
      "[test]", `secret=${SECRET}`, "read=system,call,user,dialplan,security,command", "write=all", "",
    ].join("\n"),
    "extensions.conf": `[far]\n${fill(places.extensions)}`,
    "pjsip.conf": [
      // Callers here give their number in From, and who they are in the credentials.
      "[global]", "type=global", "endpoint_identifier_order=auth_username,username",
      "[udp]", "type=transport", "protocol=udp", `bind=127.0.0.1:${port}`,
      ...(tls && tlsPort ? [
        "[tls]", "type=transport", "protocol=tls", `bind=127.0.0.1:${tlsPort}`,
        `cert_file=${tls.cert}`, `priv_key_file=${tls.key}`, "method=tlsv1_2",
      ] : []),
      fill(places.pjsip),
    ].join("\n"),
  };
}

function createEvents() {
  const events: AsteriskEvent[] = [];
  const waiting = createWaiting();
  const found = (name: string, values: AsteriskEvent): AsteriskEvent[] =>
    events.filter((event) => event.Event === name
      && Object.entries(values).every(([key, value]) => event[key] === value));
  return {
    tell: (event: AsteriskEvent): void => {
      events.push(event);
      waiting.look();
    },
    count: (name: string, values: AsteriskEvent = {}): number => found(name, values).length,
    saw: async (name: string, values: AsteriskEvent = {}, number = 0): Promise<AsteriskEvent> => {
      await waiting.until(() => found(name, values).length > number);
      return found(name, values)[number]!;
    },
  };
}

interface Running {
  act(action: AsteriskEvent): Promise<AsteriskEvent>;
  end(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}

async function run(
  { command, before }: Installation, folder: string, managerPort: number,
  events: ReturnType<typeof createEvents>, print?: (text: string) => void,
): Promise<Running> {
  const child = spawn(
    command, [...before, "-f", "-C", join(folder, "conf/asterisk.conf")],
    { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  const exit = once(child, "close");
  await isReady(child, print);
  const manager = await openManager(managerPort, events);
  return {
    act: manager.act,
    end: async (signal) => {
      manager.close();
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await exit;
    },
  };
}

async function isReady(
  child: ChildProcess, print: ((text: string) => void) | undefined,
): Promise<void> {
  let output = "";
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on("data", (chunk: Buffer) => {
        output = `${output}${chunk.toString()}`.slice(-20_000);
        if (output.includes(READY)) resolve();
        print?.(chunk.toString());
      });
    }
    child.once("error", reject);
    child.once("close", () => reject(new Error(`Asterisk did not start:\n${output}`)));
  });
}

/** Actions and events are both lines `Name: value`, ended by an empty line. */
async function openManager(port: number, events: ReturnType<typeof createEvents>) {
  const socket: Socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.on("error", () => undefined);
  const answers = new Map<string, (answer: AsteriskEvent) => void>();
  let rest = "";
  socket.on("data", (chunk: Buffer) => {
    // A greeting of one line comes first.
    rest = `${rest}${chunk.toString()}`.replace(/^Asterisk Call Manager.*\r\n/, "");
    const blocks = rest.split("\r\n\r\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const message = messageOf(block);
      if (message.Event !== undefined) events.tell(message);
      else answers.get(message.ActionID ?? "")?.(message);
    }
  });
  // Ids begin at the time, so that they differ from those of an earlier connection.
  const first = Date.now();
  let actions = 0;
  const act = (action: AsteriskEvent): Promise<AsteriskEvent> => new Promise((resolve) => {
    const ActionID = `${first}-${actions += 1}`;
    answers.set(ActionID, resolve);
    const lines = Object.entries({ ...action, ActionID }).map(([key, value]) => `${key}: ${value}`);
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  });
  const { Response: said } = await act({ Action: "Login", Username: "test", Secret: SECRET });
  if (said !== "Success") throw new Error("Asterisk's manager interface lets nobody in");
  return { act, close: () => void socket.destroy() };
}

function messageOf(block: string): AsteriskEvent {
  const message: AsteriskEvent = {};
  for (const line of block.split("\r\n")) {
    const colon = line.indexOf(":");
    const [key, value] = [line.slice(0, colon), line.slice(colon + 1).trim()];
    // Each line of a command's answer is an `Output` of its own.
    message[key] = key in message ? `${message[key]}\n${value}` : value;
  }
  return message;
}
