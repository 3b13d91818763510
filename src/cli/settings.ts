// The settings command of the `parley` program, and the table it prints for docs/configuration.md.
import { describeSettings, type SettingDescription } from "#config/config.ts";
import { table, type Command } from "./command.ts";

const HEAD = ["| Setting | Default | Meaning |", "|---|---|---|"];

function markdownRow({ name, default: value, description, secret }: SettingDescription): string {
  const from = secret ? ` (also \`${name}_FILE\`)` : "";
  return `| \`${name}\` | ${value === "" ? "" : `\`${value}\``} | ${description}${from} |`;
}

export const settingsMarkdown = (): string =>
  [...HEAD, ...describeSettings().map(markdownRow)].join("\n");

export const settingsCommand: Command = {
  name: "settings",
  takes: "[--markdown]",
  summary: "Print every setting with its default and meaning",
  options: { markdown: { type: "boolean" } },
  run: ({ values }) => {
    const settings = describeSettings();
    const text = values.markdown === true
      ? settingsMarkdown()
      : table(settings.map(({ name, default: value, description }) => [name, value, description]));
    return Promise.resolve({ value: settings, text });
  },
};
