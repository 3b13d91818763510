// The parts of undici that requests are made with. Its index would load all the others too: mocks,
// caches, proxies, a second fetch, at 0.1 s and 16 MB in each thread. Files that open a WebSocket
// import it from its own file.
import buildConnector from "undici/lib/core/connect.js";
import sendRequest from "undici/lib/api/api-request.js";
import Agent from "undici/lib/dispatcher/agent.js";
import Client from "undici/lib/dispatcher/client.js";
import Dispatcher from "undici/lib/dispatcher/dispatcher.js";
import Pool from "undici/lib/dispatcher/pool.js";
import type { Dispatcher as DispatcherType } from "undici";

Dispatcher.prototype.request = sendRequest;

type Options = Omit<DispatcherType.RequestOptions, "origin" | "path" | "method"> & {
  dispatcher: DispatcherType;
  method: DispatcherType.HttpMethod;
};

/** Resolves with the head; the body is read later. The bounds are those of the dispatcher. */
export function request(
  address: string | URL, { dispatcher, ...options }: Options,
): Promise<DispatcherType.ResponseData> {
  const { origin, pathname, search } = new URL(address);
  return dispatcher.request({ ...options, origin, path: pathname + search });
}

export { Agent, buildConnector, Client, Pool };
