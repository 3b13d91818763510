// A tool's endpoint for tests: a real server that answers what a test says and keeps its requests.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { listenLocally } from "./local-server.ts";

export interface EndpointRequest {
  method: string;
  /** Path and query. */
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Endpoint {
  url: string;
  requests: EndpointRequest[];
  /** Connections, whether or not a request came over them. */
  connections(): number;
  answer(handle: (request: EndpointRequest, response: ServerResponse) => void): void;
  close(): Promise<void>;
}

const answerJson = (_: EndpointRequest, response: ServerResponse): void => {
  response.setHeader("content-type", "application/json");
  response.end('{"ok":true}');
};

export async function startEndpoint(): Promise<Endpoint> {
  const requests: EndpointRequest[] = [];
  let connections = 0;
  let handle: (request: EndpointRequest, response: ServerResponse) => void = answerJson;
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const { method = "", url = "", headers } = incoming;
      const request = { method, url, headers, body: Buffer.concat(chunks).toString("utf8") };
      requests.push(request);
      handle(request, response);
    });
  });
  server.on("connection", () => (connections += 1));
  const { url, close } = await listenLocally(server);
  return {
    url,
    requests,
    connections: () => connections,
    answer: (next) => (handle = next),
    close,
  };
}
