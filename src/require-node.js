// Plain JavaScript on purpose: it has to run, and say one clear line, on the Node that cannot run
// the rest. Imported before everything else by main.ts and cli.ts.
const NEEDED_MAJOR = 22;

if (Number(process.versions.node.split(".")[0]) !== NEEDED_MAJOR) {
  process.stderr.write(
    `Parley needs Node ${NEEDED_MAJOR}, this is ${process.version}. ` +
      "Run `npm ci` and use the npm scripts: they bring the right one.\n",
  );
  process.exit(78);
}
