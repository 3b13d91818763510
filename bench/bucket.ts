// The S3 bucket of files.ts, in a process of its own; it prints where it listens, and its parent
// ends it with a signal.
import { startS3Server } from "#support/vendors/s3-server.ts";

const { endpoint, close } = await startS3Server();
process.on("SIGTERM", () => void close().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ port: Number(new URL(endpoint).port) })}\n`);
