// The server: its nodes, what each has in progress, and which one is draining. Reached from the
// state of the connection; a single server says that it is alone.
import { useEffect } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { when } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Loaded, Notice, Page, Status } from "#ui/dashboard/kit/layout.tsx";

type Server = paths["/user/server"]["get"]["responses"][200]["content"]["application/json"];
type Node = Server["nodes"][number];

/** As often as a node says that it lives. */
const LOOK_MS = 2000;
const TONES = { live: "good", draining: "warn", dead: "bad" } as const;

export function ServerPage() {
  const api = useApi();
  const data = useData("server", () => unwrap(api.GET("/user/server")));
  const { reload } = data;
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") reload();
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [reload]);
  return (
    <Page title="Server">
      <Loaded data={data}>
        {(server) => server.is_alone ? <Alone server={server} /> : <Nodes server={server} />}
      </Loaded>
    </Page>
  );
}

function Alone({ server: { nodes, waiting } }: { server: Server }) {
  return (
    <Card title="This server">
      <div class="stack">
        <Facts rows={[...nodes.flatMap(factsOf), ...waitingOf(waiting)]} />
        <p class="soft">One process serves everything from one file: there are no other nodes.</p>
      </div>
    </Card>
  );
}

function Nodes({ server: { nodes, waiting } }: { server: Server }) {
  const draining = nodes.filter(({ state }) => state === "draining");
  return (
    <>
      {draining.map(({ id, name }) => (
        <Notice key={id} tone="warn">
          Node {id} ({name}) is draining: it finishes what is in progress and starts nothing new.
        </Notice>
      ))}
      {nodes.map((node) => <NodeCard key={node.id} node={node} />)}
      <Card title="Waiting for any node">
        <Facts rows={waitingOf(waiting)} />
      </Card>
    </>
  );
}

type Row = [label: string, value: string | number | null];

const factsOf = (node: Node): Row[] => [
  ["Process", node.name],
  ["Version", node.version],
  ["Up since", when(node.started_at)],
  ["Live calls", node.calls],
  ["Open streams", node.streams],
];

const waitingOf = ({ documents, deliveries }: Server["waiting"]): Row[] =>
  [["Documents waiting to be read", documents], ["Webhooks waiting to be sent", deliveries]];

function NodeCard({ node }: { node: Node }) {
  const { id, state, is_this: isThis } = node;
  return (
    <Card
      title={<>Node {id}{isThis && " (answers here)"}</>}
      actions={<Status code={state} tone={TONES[state]} />}
    >
      <Facts rows={[
        ...factsOf(node),
        ["Its own address", node.url],
        ["Last sign of life", when(node.beat_at)],
        ...node.owned.map(({ what, things }): [string, number] => [`Its ${what}`, things]),
        ["Leases it holds", node.leases.join(", ") || null],
      ]} />
    </Card>
  );
}
