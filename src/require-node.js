// Plain JavaScript on purpose: it must run, and print one clear line, on a Node that cannot run the
// rest. Imported before everything else by main.ts, cli.ts and the scripts that start them.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const NEEDED_MAJOR = 22;

/** The Node installed beside this; npm's scripts and npx find it, other tools may not. */
function bundledNode() {
  const { arch, argv, platform } = process;
  try {
    const require = createRequire(import.meta.url);
    const manifest = require.resolve(`node-${platform.replace("win32", "win")}-${arch}/package.json`);
    const node = join(dirname(manifest), "bin", platform === "win32" ? "node.exe" : "node");
    return existsSync(node) ? [node, ...argv.slice(1)].join(" ") : null;
  } catch {
    return null;
  }
}

if (Number(process.versions.node.split(".")[0]) !== NEEDED_MAJOR) {
  const command = bundledNode();
  process.stderr.write(`Parley needs Node ${NEEDED_MAJOR}, this is ${process.version}. ` + (command
    ? `The right one came with it: ${command}\n`
    : "Run `npm ci` and use the npm scripts: they bring the right one.\n"));
  process.exit(78);
}

// Its file handles have no `sync`, and the processes that read documents cannot see its packages.
if (process.versions.pnp) {
  process.stderr.write("parley: it does not run under Yarn's Plug'n'Play: "
    + "put `nodeLinker: node-modules` into .yarnrc.yml and run `yarn install`\n");
  process.exit(78);
}
