#!/usr/bin/env node
// The `parley` command: finds the command, reads its options, prints its result. The commands
// themselves are in src/cli/. Everything here is safe while a server runs on the same data folder.
import "./require-node.js";
import { parseArgs } from "node:util";
import { accountCommands } from "./cli/accounts.ts";
import { backupCommands } from "./cli/backups.ts";
import { UsageError, type Command } from "./cli/command.ts";
import { doctorCommand } from "./cli/doctor.ts";
import { verifyLedgerCommand } from "./cli/ledger.ts";
import { moveCommand } from "./cli/move.ts";
import { numberCommands } from "./cli/numbers.ts";
import { openapiCommand } from "./cli/openapi.ts";
import { searchCommands } from "./cli/search.ts";
import { settingsCommand } from "./cli/settings.ts";
import { trimCommand } from "./cli/trim.ts";
import { userCommands } from "./cli/users.ts";
import { EXIT_CONFIG, readConfig } from "./base/config/config.ts";
import { StorageFailure } from "./base/core/faults.ts";
import { heedHangUp } from "./base/core/hang-up.ts";
import { keepAwake } from "./base/core/system.ts";
import { VERSION } from "./base/core/version.ts";
import { settleRestore } from "./cli/restoring.ts";

const COMMANDS: Command[] = [
  ...accountCommands, ...userCommands, ...numberCommands, verifyLedgerCommand, ...backupCommands,
  doctorCommand, openapiCommand, ...searchCommands, moveCommand, settingsCommand, trimCommand,
];

/** Groups of commands with the same first word, for the list of all commands. */
const FAMILIES: Record<string, string> = {
  account: "accounts and their plans",
  balance: "the balance of an account",
  key: "API keys",
  ledger: "check that every charge adds up",
  number: "the operator's own phone numbers",
  search: "the search index of the inbox",
  user: "members who sign in to an account",
};

/** Fits a terminal of 80 by 24. */
function usage(): string {
  const rows = new Map([["serve", "Run the server"]]);
  for (const { name, summary } of COMMANDS) {
    const [first = "", second] = name.split(" ");
    if (second === undefined) rows.set(name, summary);
    else rows.set(first, `${family(first).map(verbOf).join("|")}: ${FAMILIES[first] ?? summary}`);
  }
  const width = Math.max(...[...rows.keys()].map(({ length }) => length));
  return [
    "parley <command> [options] [--json]",
    "",
    ...[...rows].map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    "Help on a command: parley <command> --help",
    "Settings are environment variables: parley settings",
    "",
  ].join("\n");
}

const write = (text: string): void => void process.stdout.write(text);

const callOf = ({ name, takes }: Command): string => `parley ${name} ${takes}`.trim();

/** The commands of two words that begin with this one. */
const family = (word: string): Command[] => COMMANDS.filter(({ name }) => name.startsWith(`${word} `));

const verbOf = ({ name }: Command): string => name.split(" ")[1] ?? "";

/** Finds a command of one word or two. */
function findCommand(argv: string[]): Command {
  const [first = "", second = ""] = argv;
  const names = [`${first} ${second}`, first];
  const command = COMMANDS.find(({ name }) => names.includes(name));
  if (command) return command;
  const calls = family(first).map(callOf);
  if (calls.length === 0) throw new UsageError(`unknown command: ${first}; see parley --help`);
  const given = second === "" ? "" : `there is no command ${names[0] ?? ""}, but `;
  throw new UsageError(`${given}${first} takes one of these:\n  ${calls.join("\n  ")}`);
}

/** Replaces Node's error texts, which describe its parser's syntax and not ours. */
function readLine(command: Command, argv: string[]) {
  try {
    return parseArgs({
      args: argv.slice(command.name.split(" ").length),
      options: { ...command.options, json: { type: "boolean" }, help: { type: "boolean" } },
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    const [, unknown] = /^Unknown option '([^']+)'/.exec((error as Error).message) ?? [];
    if (unknown === undefined) throw error;
    throw new UsageError(`unknown option ${unknown}: ${callOf(command)}`);
  }
}

async function runCommand(argv: string[]): Promise<number> {
  const command = findCommand(argv);
  const { values, positionals } = readLine(command, argv);
  if (values.help === true) {
    write(`${callOf(command)}\n\n  ${command.summary}\n`);
    return 0;
  }
  const extra = positionals[command.words ?? 0];
  if (extra !== undefined) throw new UsageError(`unexpected argument ${extra}: ${callOf(command)}`);
  const outcome = readConfig();
  for (const warning of outcome.warnings) process.stderr.write(`parley: ${warning}\n`);
  if (outcome.kind === "invalid") {
    for (const problem of outcome.problems) process.stderr.write(`parley: ${problem}\n`);
    return EXIT_CONFIG;
  }
  settleRestore(outcome.config.PARLEY_DATA_DIR);
  const result = await command.run({ config: outcome.config, values, positionals });
  write(values.json === true ? `${JSON.stringify(result.value)}\n` : `${result.text}\n`);
  return result.failed === true ? 1 : 0;
}

async function main(argv: string[]): Promise<number> {
  const [first] = argv;
  if (first === undefined || first === "--help" || first === "-h" || first === "help") {
    write(usage());
    return 0;
  }
  if (first === "--version") {
    write(`${VERSION}\n`);
    return 0;
  }
  if (argv.at(-1) === "--help" && argv.length === 2) {
    const calls = first === "serve"
      ? ["parley serve"]
      : family(first).map((command) => `${callOf(command)}\n  ${command.summary}`);
    if (calls.length > 0) {
      write(`${calls.join("\n")}\n`);
      return 0;
    }
  }
  // Only this command needs the server, which takes ten times as long to load as the others.
  if (first === "serve") return (await import("./app/serve.ts")).serve(argv.slice(1));
  const awake = keepAwake();
  try {
    return await runCommand(argv);
  } catch (error) {
    const { message, code, cause } = error as Error & { code?: string };
    const why = error instanceof StorageFailure && cause instanceof Error ? `: ${cause.message}` : "";
    process.stderr.write(`parley: ${message}${why}\n`);
    if (error instanceof UsageError) return error.exitCode;
    return code?.startsWith("ERR_PARSE_ARGS") === true ? new UsageError(message).exitCode : 1;
  } finally {
    awake.cancel();
  }
}

// `parley … | head -1` closes the pipe early, which is not an error. The server ignores all errors
// of its output (outliveOutput).
if (process.argv[2] !== "serve") {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    process.stderr.write(`parley: what it prints cannot be written: ${error.message}\n`);
    process.exit(1);
  });
}
heedHangUp();
process.exitCode = await main(process.argv.slice(2));
