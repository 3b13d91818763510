// A recogniser that costs nothing, in a process of its own, for bench/sip.ts and bench/webrtc.ts:
// it hears the same question in whatever it is sent, over OpenAI's `/v1/audio/transcriptions`.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const server = createServer((request, response) => {
  request.resume().once("end", () => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ text: "When are you open?" }));
  });
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ port })}\n`);
});
