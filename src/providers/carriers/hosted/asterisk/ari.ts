// The part of Asterisk's REST interface (ARI) that calls need, with one function per request, for
// Asterisk 20.18, 22.8 or later; its own rest-api/*.json documents requests and responses. Removing
// something that is already gone is not an error.
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { Dialled } from "#providers/carriers/hosted/port.ts";
import {
  basicAuthorization, createRestClient, HOSTED_REST_LIMITS, isDone, segment,
  type RestAnswer, type RestLimits,
} from "#providers/carriers/hosted/rest.ts";

export interface AriOptions {
  /** Such as `http://127.0.0.1:8088`. */
  url: string;
  user: string;
  password: string;
  /** The Stasis application calls are in. */
  app: string;
  limits?: Partial<RestLimits>;
}

const ARI_LIMITS: RestLimits = {
  ...HOSTED_REST_LIMITS,
  // Asterisk is on the same machine or close by.
  answerMs: 5000,
  // The list of all channels: some 700 bytes each.
  bytesMax: 8 * 1024 * 1024,
};

export const VENDOR = "Asterisk";

const Text = Type.String({ maxLength: 512 });
export const Channel = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 512 }),
  state: Text,
  caller: Type.Object({ number: Text }),
  dialplan: Type.Object({
    context: Text, exten: Text, app_name: Text, app_data: Type.String({ maxLength: 8192 }),
  }),
});
export type AriChannel = Static<typeof Channel>;

const AnyChannel = TypeCompiler.Compile(Channel);
const Bridge = TypeCompiler.Compile(Type.Object({ id: Text }));
const Variable = TypeCompiler.Compile(Type.Object({ value: Type.String() }));

interface Origination {
  channelId: string;
  endpoint: string;
  /** Null for the one configured for the endpoint. */
  callerId: string | null;
  timeoutS: number;
}

interface MediaChannel {
  channelId: string;
  /** Entry of websocket_client.conf. */
  client: string;
  format: "slin16";
  /** Channel variables, which come back in MEDIA_START. */
  variables: Record<string, string>;
}

export interface Ari {
  /** Sends one request and never retries it. Never rejects. */
  originate(call: Origination): Promise<Dialled>;
  answer(channelId: string): Promise<void>;
  /** Succeeds also when the channel is gone. */
  hangUp(channelId: string, reason?: "busy" | "rejected"): Promise<void>;
  dtmf(channelId: string, digits: string): Promise<void>;
  media(channel: MediaChannel): Promise<void>;
  bridge(bridgeId: string): Promise<void>;
  join(bridgeId: string, channelId: string): Promise<void>;
  /** Succeeds also when the bridge is gone; its channels stay. */
  dropBridge(bridgeId: string): Promise<void>;
  /** Null when the variable cannot be read. */
  variable(channelId: string, name: string): Promise<string | null>;
  setVariable(channelId: string, name: string, value: string): Promise<void>;
  /** Moves the channel from the application to the dialplan. */
  leave(channelId: string, context: string, extension: string): Promise<void>;
  channels(): Promise<AriChannel[]>;
  /** The ids of all bridges. */
  bridges(): Promise<string[]>;
  close(): Promise<void>;
}

const isGone = ({ status }: RestAnswer): boolean => status === 404;

export function createAri({ url, user, password, app, limits }: AriOptions): Ari {
  const client = createRestClient({
    vendor: VENDOR, root: `${url}/ari`, limits: { ...ARI_LIMITS, ...limits },
    authorization: () => basicAuthorization(user, password),
  });
  const post = async (path: string, json: object = {}): Promise<void> => {
    const answer = await client.ask("POST", path, { json });
    if (!isDone(answer)) throw client.refusal(answer);
  };
  const remove = async (path: string): Promise<void> => {
    const answer = await client.ask("DELETE", path);
    if (!isDone(answer) && !isGone(answer)) throw client.refusal(answer);
  };
  const list = async (path: string): Promise<unknown[]> => {
    const answer = await client.ask("GET", path);
    if (answer.status === 200 && Array.isArray(answer.body)) return answer.body;
    throw client.refusal(answer);
  };
  const of = (channelId: string): string => `/channels/${segment(channelId)}`;
  return {
    originate: ({ channelId, endpoint, callerId, timeoutS }) => {
      const json = {
        channelId, endpoint, app, timeout: timeoutS, ...(callerId === null ? {} : { callerId }),
      };
      // A 500 is a refusal, too: "Allocation failed" is the error when no device is registered.
      return client.order("/channels", { json }, () => channelId, () => true);
    },
    answer: (channelId) => post(`${of(channelId)}/answer`),
    hangUp: (channelId, reason) =>
      remove(of(channelId) + (reason === undefined ? "" : `?reason=${reason}`)),
    dtmf: (channelId, digits) => post(`${of(channelId)}/dtmf`, { dtmf: digits }),
    media: ({ channelId, client: name, format, variables }) => post("/channels/externalMedia", {
      channelId, app, external_host: name, transport: "websocket", encapsulation: "none",
      connection_type: "client", format, transport_data: "f(json)", variables,
    }),
    bridge: (bridgeId) => post(`/bridges/${segment(bridgeId)}`, { type: "mixing", name: app }),
    join: (bridgeId, channelId) =>
      post(`/bridges/${segment(bridgeId)}/addChannel`, { channel: channelId }),
    dropBridge: (bridgeId) => remove(`/bridges/${segment(bridgeId)}`),
    variable: async (channelId, name) => {
      const { body } = await client.ask(
        "GET", `${of(channelId)}/variable?variable=${encodeURIComponent(name)}`);
      return Variable.Check(body) ? body.value : null;
    },
    setVariable: (channelId, variable, value) =>
      post(`${of(channelId)}/variable`, { variable, value }),
    leave: (channelId, context, extension) =>
      post(`${of(channelId)}/continue`, { context, extension, priority: 1 }),
    channels: async () =>
      (await list("/channels")).filter((one): one is AriChannel => AnyChannel.Check(one)),
    bridges: async () =>
      (await list("/bridges")).flatMap((one) => (Bridge.Check(one) ? [one.id] : [])),
    close: client.close,
  };
}
