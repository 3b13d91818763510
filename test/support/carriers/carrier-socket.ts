// Opens the WebSockets of the carriers' phones.
import type { WebSocket } from "ws";

/** The status with which the server refused it; null once it is open. */
export const refusalOf = (socket: WebSocket): Promise<number | null> =>
  new Promise((resolve, reject) => {
    socket.on("open", () => resolve(null));
    socket.on("unexpected-response", (_, { statusCode }) => resolve(statusCode ?? 0));
    socket.on("error", reject);
  });
