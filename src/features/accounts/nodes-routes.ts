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
  id: Type.Integer(about("The node's number, never given again.", 3)),
  name: Type.String(about("The machine and the process.", "one.internal:812")),
  url: Nullable(Type.String(), about(
    "Where this node alone is reached; null: it has no address of its own.",
    "https://node1.example.org")),
  version: Type.String(about("The program's version there.", "0.1.0")),
  state: OneOf(["live", "draining", "dead"], about(
    "`draining`: it ends what it has and begins nothing; `dead`: others take up what it had.",
    "live")),
  is_this: Type.Boolean(about("Whether it is the node that answers.", true)),
  started_at: Moment("When it started, in UTC."),
  beat_at: Moment("When it was last heard of, in UTC."),
  calls: Type.Integer(about("Live calls it has.", 2)),
  streams: Type.Integer(about("Open streams at it.", 14)),
  owned: Type.Array(Type.Object({
    what: Type.String(about("What is its own until it is gone.", "webhook endpoints")),
    things: Type.Integer(about("How many.", 3)),
  }), about("What it has to itself.")),
  leases: Type.Array(Type.String(), about("What it alone does for all.", ["clock"])),
}, named("Node", "A process that serves the database."));

const ServerSchema = Type.Object({
  as_of: Moment("The moment of it, by the database's clock, in UTC."),
  is_alone: Type.Boolean(about("Whether no other node can serve the database.", false)),
  nodes: Type.Array(NodeSchema, about("All that live or died lately, the oldest first.")),
  waiting: Type.Object({
    documents: Type.Integer(about("Documents being read, or to be.", 0)),
    deliveries: Type.Integer(about("Webhooks to be sent, or sent again.", 1)),
  }, about("What waits for any of them.")),
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
    summary: "See the server's nodes",
    description: "Who serves the database, who drains, what each has under way and what waits. Only "
      + "where the server has one account; the operator of more reads `/metrics` and `parley doctor`.",
    errorShape: "message",
    responses: { 200: { description: "The server as it is now", schema: ServerSchema } },
    handle: async () => {
      if (await countAccounts() > 1) {
        throw new Fault(403, "This server has several accounts: its operator reads /metrics and parley doctor.");
      }
      const { now, nodes, waiting } = await view();
      return json(200, {
        as_of: isoMicros(now), is_alone: isAlone, waiting,
        nodes: nodes.map((node) => wireNode(node, nodeId)),
      });
    },
  })];
}
