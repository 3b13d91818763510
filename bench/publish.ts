// The lower bound of fan-out's cost: uWebSockets.js with nothing behind it. `/topic/ws` publishes
// over WebSocket, `/topic/sse` writes to each response; a POST to /publish sends its body's text,
// with the time it came. Prints {"port":12345}.
import * as uWS from "uWebSockets.js";
import { nowMicros } from "./watching.ts";

const responses = new Set<uWS.HttpResponse>();
const app = uWS.App()
  .ws("/topic/ws", {
    open: (socket) => {
      socket.subscribe("topic");
      socket.send("connected");
    },
  })
  .get("/topic/sse", (response) => {
    responses.add(response);
    response.onAborted(() => void responses.delete(response));
    response.writeHeader("content-type", "text/event-stream").write(": connected\n\n");
  })
  .post("/publish", (response) => {
    response.onAborted(() => undefined);
    response.onData((_bytes, isLast) => {
      if (!isLast) return;
      const json = JSON.stringify({
        id: "2.8", type: "reply_delta", turn_id: 1, text: ` @${nowMicros()}`,
      });
      app.publish("topic", json);
      const event = `id: 2.8\nevent: reply_delta\ndata: ${json}\n\n`;
      for (const one of responses) one.cork(() => one.write(event));
      response.cork(() => response.end("{}"));
    });
  });
app.listen("127.0.0.1", 0, (socket) => {
  if (!socket) throw new Error("the baseline cannot listen");
  process.stdout.write(`${JSON.stringify({ port: uWS.us_socket_local_port(socket) })}\n`);
});
