// The wire of the server itself: the nodes that share its database, what each has in flight, and
// what waits. Only for the sole account of a server: no account may learn of another's work.
import { Type } from "@sinclair/typebox";
import type { ClusterAtAGlance, NodeAtAGlance } from "#cluster/cluster.ts";
import { Fault } from "#core/faults.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros } from "#core/system.ts";
import { Moment } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";

export interface NodesOptions {
  /** This node. */
  nodeId: number;
  /** True: the database is a file, which only one node can serve. */
  isAlone: boolean;
  view(): Promise<ClusterAtAGlance>;
  countAccounts(): Promise<number>;
}

const NodeSchema = Type.Object({
  id: Type.Integer(about("The node's id, never reused.", 3)),
  name: Type.String(about("The host and process.", "one.internal:812")),
  url: Nullable(Type.String(), about(
    "The URL of this node alone; null if it has no address of its own.",
    "https://node1.example.org")),
  version: Type.String(about("The version it runs.", "0.1.0")),
  state: OneOf(["live", "draining", "dead"], about(
    "`draining`: finishes its work and accepts no more; `dead`: other nodes take over its work.",
    "live")),
  is_this: Type.Boolean(about("Whether it is the node that answered this request.", true)),
  started_at: Moment("When it started, in UTC."),
  beat_at: Moment("When it last reported, in UTC."),
  calls: Type.Integer(about("Live calls on it.", 2)),
  streams: Type.Integer(about("Open streams on it.", 14)),
  owned: Type.Array(Type.Object({
    what: Type.String(about("Resources it holds as long as it lives.", "webhook endpoints")),
    things: Type.Integer(about("How many.", 3)),
  }), about("Resources it owns.")),
  leases: Type.Array(Type.String(), about("Duties it carries out for all nodes.", ["clock"])),
}, named("Node", "A server process on the database."));

const ServerSchema = Type.Object({
  as_of: Moment("When this was read, by the database's clock, in UTC."),
  is_alone: Type.Boolean(about("True if no other node can serve the database.", false)),
  nodes: Type.Array(NodeSchema, about("Nodes that are alive or died recently, oldest first.")),
  waiting: Type.Object({
    documents: Type.Integer(about("Documents being read or waiting to be.", 0)),
    deliveries: Type.Integer(about("Webhook deliveries waiting for their first or next attempt.",
      1)),
  }, about("Work waiting for any node.")),
});

const wireNode = (node: NodeAtAGlance, nodeId: number) => ({
  id: node.id, name: node.name, url: node.url, version: node.version, state: node.state,
  is_this: node.id === nodeId,
  started_at: isoMicros(node.startedAt), beat_at: isoMicros(node.beatAt),
  calls: node.calls, streams: node.streams,
  owned: Object.entries(node.owned).map(([what, things]) => ({ what, things })),
  leases: node.leases,
});

export function nodesRoutes({ nodeId, isAlone, view, countAccounts }: NodesOptions): Route[] {
  return [keyRoute({
    method: "GET",
    path: "/user/server",
    tag: "Account",
    summary: "List the server's nodes",
    description: "Shows which nodes serve the database, which are draining, what each is doing and "
      + "what is queued. Only on a server with a single account; with more, the operator uses "
      + "`/metrics` and `parley doctor`.",
    errorShape: "message",
    responses: { 200: { description: "The server as it is now", schema: ServerSchema } },
    handle: async () => {
      if (await countAccounts() > 1) {
        throw new Fault(403, "This server has several accounts: only its operator can see its nodes, by /metrics and parley doctor.");
      }
      const { now, nodes, waiting } = await view();
      return json(200, {
        as_of: isoMicros(now), is_alone: isAlone, waiting,
        nodes: nodes.map((node) => wireNode(node, nodeId)),
      });
    },
  })];
}
