// API keys: the programs that may use the account.
import { useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi, useSession } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { day, instant, when, whenExactly, year } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Page, Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { NewKey } from "./new-key.tsx";
import "./keys.css";

type Key = paths["/user/api-keys"]["get"]["responses"][200]["content"]["application/json"]["api_keys"][number];

/** A token is `<id>|<secret>`. */
const idOf = (token: string | null): number => Number(token?.split("|")[0] ?? 0);

const SOON_MS = 7 * 24 * 3600 * 1000;

function Expiry({ at }: { at: string | null }) {
  if (at === null) return <>Never</>;
  const left = instant(at).getTime() - Date.now();
  if (left <= 0) return <Status code="Expired" tone="bad" />;
  const isSoon = left < SOON_MS;
  // Shows the year if it is not the current one.
  const text = year(instant(at)) === year(new Date()) ? day(instant(at)) : when(at);
  return <time class={isSoon ? "keys-soon" : undefined} title={whenExactly(at)}>{text}</time>;
}

export function Keys() {
  const api = useApi();
  const { apiKey, signOut } = useSession();
  const toasts = useToasts();
  const [isCreating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const list = useData("keys", async () => (await unwrap(api.GET("/user/api-keys"))).api_keys);
  useFocusReload(list.reload);
  const ownId = idOf(apiKey);
  const revoke = async ({ id, name }: Key): Promise<void> => {
    await unwrap(api.DELETE("/user/api-keys/{id}", { params: { path: { id } } }));
    if (id === ownId) return signOut();
    toasts.notify(`“${name}” is revoked`);
    list.reload();
  };
  return (
    <Page
      title="API keys"
      actions={<Button kind="main" needs="keys" icon="add" onClick={() => setCreating(true)}>New key</Button>}
    >
      <Card class="flush">
        <Table
          label="API keys" columns={columnsOf(ownId, setRevoking)} rowKey={({ id }) => id}
          rows={rowsOf(list.value, list.error, list.reload)}
          empty={<Empty icon="keys" title="No keys">Create one for each of your programs.</Empty>}
        />
      </Card>
      <p class="soft">
        Programs send a key as <code>Authorization: Bearer …</code>; <a href="/docs">the API</a> says
        what they may ask for. A key that only reads cannot change anything or spend money.
      </p>
      {isCreating && <NewKey onClose={() => setCreating(false)} onCreated={list.reload} />}
      {revoking && (
        <Confirm
          title={`Revoke “${revoking.name}”?`} onClose={() => setRevoking(null)}
          action={revoking.id === ownId ? "Revoke and sign out" : "Revoke"}
          onConfirm={() => revoke(revoking)}
        >
          {revoking.id === ownId
            ? "You are signed in with this key: you will be signed out at once, and need another one to sign in again. "
            : "Anything that uses it loses access at once. "}
          It cannot be brought back.
        </Confirm>
      )}
    </Page>
  );
}

const columnsOf = (ownId: number, onRevoke: (key: Key) => void): Column<Key>[] => [
  {
    title: "Name", grow: 1.8,
    cell: ({ id, name }) => (
      <span class="keys-name" title={name}>
        <span class="two">{name}</span>{id === ownId && <Status code="This session" tone="busy" />}
      </span>
    ),
  },
  {
    title: "Access", priority: 2, grow: 1.05, isWords: true,
    cell: ({ scopes }) => scopes.includes("write") ? "Read and write" : "Read",
  },
  { title: "Expires", priority: 2, cell: ({ expires_at: at }) => <Expiry at={at} /> },
  {
    title: "Last used", priority: 2,
    cell: ({ last_used_at: at }) => at === null
      ? "Never" : <time title={whenExactly(at)}>{when(at)}</time>,
  },
  { title: "Created", priority: 3, cell: ({ created_at: at }) => when(at) },
  {
    title: "Created by", priority: 3, grow: 1.25,
    cell: ({ made_by: by }) => <span class="two">{by?.name ?? "Command line"}</span>,
  },
  {
    title: "Actions", align: "end", grow: "none",
    cell: (key) => (
      <Button kind="quiet" needs="keys" label={`Revoke ${key.name}`} onClick={() => onRevoke(key)}>
        Revoke
      </Button>
    ),
  },
];
