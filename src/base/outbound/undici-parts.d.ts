// The types of undici's files that undici.ts imports one by one.
declare module "undici/lib/dispatcher/agent.js" {
  import { Agent } from "undici";
  export default Agent;
}
declare module "undici/lib/dispatcher/client.js" {
  import { Client } from "undici";
  export default Client;
}
declare module "undici/lib/dispatcher/pool.js" {
  import { Pool } from "undici";
  export default Pool;
}
declare module "undici/lib/dispatcher/dispatcher.js" {
  import { Dispatcher } from "undici";
  export default Dispatcher;
}
declare module "undici/lib/core/connect.js" {
  import { buildConnector } from "undici";
  export default buildConnector;
}
declare module "undici/lib/api/api-request.js" {
  import type { Dispatcher } from "undici";
  const request: Dispatcher["request"];
  export default request;
}
declare module "undici/lib/web/fetch/formdata.js" {
  export { FormData } from "undici";
}
declare module "undici/lib/web/websocket/websocket.js" {
  export { ping, WebSocket } from "undici";
}
