// A setting acts: something beyond its schema, its wire and its pages reads it, or the server says
// with every create, update and read that it does not act.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import ts from "typescript";
import { BuiltInTool } from "#features/assistants/built-in-tools.ts";
import { AssistantSettings } from "#features/assistants/settings.ts";
import { CreateBody as CampaignBody } from "#features/campaigns/routes.ts";
import { UpdateBody as NumberBody } from "#features/phone-numbers/routes.ts";
import { CreateBody as TrunkBody } from "#features/phone-numbers/sip-trunk-routes.ts";
import { CreateBody as ToolBody } from "#features/tools/wire.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** What defines, judges, stores or shows settings, and so proves nothing by naming them. */
const SILENT = [
  /^src\/(ui|client)\//, /(^|\/)(wire|[a-z-]*routes|settings|built-in-tools|warnings|rules)\.ts$/,
  /^src\/storage\/(assistants|tools|sip-trunks|phone-numbers|campaigns)\.ts$/,
];
/** The calls' own settings are made from the assistant's; the widget receives its own. */
const SPEAKING = /^src\/features\/(calls\/voice\/settings|conversations\/widget-routes)\.ts$/;

/** Names that are read as a property or taken out of an object, in all files that act. */
function namesRead(): Set<string> {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node)) names.add(node.name.text);
    if (ts.isElementAccessExpression(node) && ts.isStringLiteral(node.argumentExpression)) {
      names.add(node.argumentExpression.text);
    }
    if (ts.isBindingElement(node)) {
      const name = node.propertyName ?? node.name;
      if (ts.isIdentifier(name)) names.add(name.text);
    }
    ts.forEachChild(node, visit);
  };
  for (const file of globSync(["src/**/*.ts", "workers/*.ts"], { cwd: ROOT })) {
    if (!SPEAKING.test(file) && SILENT.some((silent) => silent.test(file))) continue;
    const text = readFileSync(join(ROOT, file), "utf8");
    visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
    // Statements name columns; what is written there is not a property.
    for (const [, name = ""] of text.matchAll(/@(\w+)/g)) names.add(name);
  }
  return names;
}

const camel = (name: string): string =>
  name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Wire names whose name inside says more. */
const INSIDE: Record<string, string> = {
  max_calls_in_parallel: "parallelMax", mark_complete_when_no_leads: "completesWhenDone",
  goal_completion_variable: "goalVariable", sip_trunk_type: "trunkType", sip_username: "username",
  sip_password: "password", sip_calling_format: "callingFormat", sip_transport: "transport",
  inbound_authorization_type: "inboundAuth", sip_codecs: "codecs",
  allowed_hours_start_time: "startMinute", allowed_hours_end_time: "endMinute",
  max_retries: "retriesMax", retry_interval: "retryIntervalMinutes",
};

const members = (schema: { properties: object }): string[] => Object.keys(schema.properties);

test("[ST20] every setting is used by something that acts, or named among the warnings", () => {
  const read = namesRead();
  const acts = (name: string): boolean =>
    [name, camel(name), INSIDE[name] ?? name].some((spelling) => read.has(spelling));
  const owners: [string, string[], Record<string, string>][] = [
    ["assistant", members(AssistantSettings), {}],
    ["tool", members(ToolBody), {}],
    ["trunk", members(TrunkBody), {}],
    ["number", members(NumberBody), {}],
    ["campaign", members(CampaignBody), {}],
    ...BuiltInTool.anyOf.map((one): [string, string[], Record<string, string>] =>
      [one.properties.type.const, members(one), {}]),
  ];
  const unread = owners.flatMap(([owner, names, inert]) =>
    names.filter((name) => !acts(name) && !(name in inert)).map((name) => `${owner}.${name}`));
  assert.deepEqual(unread, []);
  assert.ok(read.size > 1000 && !acts("no_such_setting"));
});
