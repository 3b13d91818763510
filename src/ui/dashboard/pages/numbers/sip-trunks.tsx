// SIP trunks: numbers of the account's own telephone system.
import { useState } from "preact/hooks";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { useFocusReload } from "#ui/dashboard/data/use-focus.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Empty } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";
import { AUTHS, type Trunk } from "./trunk-fields.ts";
import { TrunkDialog } from "./trunk-form.tsx";

const serverOf = ({ sip_address: host, sip_port: port, sip_transport: transport }: Trunk): string =>
  `${host}${port === null ? "" : `:${port}`} ${transport.toUpperCase()}`;

const authWords = (auth: string): string =>
  AUTHS.find(({ value }) => value === auth)?.label ?? auth;

const columnsFor = (remove: (trunk: Trunk) => void): Column<Trunk>[] => [
  {
    title: "Number", grow: 1.5,
    cell: ({ phone_number: text, nickname }) => (
      <TwoLines main={<span class="numbers-number">{formatPhone(text)}</span>} sub={nickname} />
    ),
  },
  {
    title: "Server", grow: 1.7, priority: 2,
    cell: (trunk) => <span class="two">{serverOf(trunk)}</span>,
  },
  {
    title: "User name", priority: 3, grow: 1.1,
    cell: ({ sip_username: name }) => <span class="two">{name}</span>,
  },
  {
    title: "Recognised by", priority: 3, grow: 1.75,
    cell: ({ inbound_authorization_type: auth, allowed_inbound_ips: networks }) => networks
      ? <TwoLines main={authWords(auth)} sub={networks.join(", ")} />
      : <span class="two">{authWords(auth)}</span>,
  },
  {
    title: "Changed", priority: 3, align: "end", grow: 0.9,
    cell: ({ updated_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
  {
    title: "Delete", align: "end", grow: "none",
    cell: (trunk) => (
      <Button
        kind="quiet" needs="buy" label={`Delete ${trunk.phone_number}`}
        onClick={() => remove(trunk)}
      >
        Delete
      </Button>
    ),
  },
];

export function SipTrunks() {
  const api = useApi();
  const toasts = useToasts();
  const [editing, setEditing] = useState<Trunk | "new" | null>(null);
  const [deleting, setDeleting] = useState<Trunk | null>(null);
  const list = useData("sip trunks", async () =>
    (await unwrap(api.GET("/user/phone-numbers/sip-trunks"))).data, ["phone_number_released"]);
  useFocusReload(list.reload);
  const add = <Button kind="main" needs="buy" icon="add" onClick={() => setEditing("new")}>New trunk</Button>;
  const isNone = list.value?.length === 0;
  return (
    <Card class="flush" {...(isNone ? {} : { title: "SIP trunks", actions: add })}>
      <Table
        label="SIP trunks" columns={columnsFor(setDeleting)} rowKey={({ id }) => id}
        rows={rowsOf(list.value, list.error, list.reload)} onClick={setEditing}
        empty={(
          <Empty icon="numbers" title="No SIP trunks yet">
            <p>Connect a number or an extension of your own telephone system.</p>
            <p>{add}</p>
          </Empty>
        )}
      />
      {editing && (
        <TrunkDialog
          trunk={editing === "new" ? null : editing} onSaved={list.reload}
          onClose={() => setEditing(null)}
        />
      )}
      {deleting && (
        <Confirm
          title={`Delete ${formatPhone(deleting.phone_number)}?`} action="Delete"
          onClose={() => setDeleting(null)}
          onConfirm={async () => {
            const { message } = await unwrap(api.DELETE("/user/phone-numbers/{id}", {
              params: { path: { id: deleting.id } },
            }));
            toasts.notify(message);
            list.reload();
          }}
        >
          It is gone at once. Assistants and campaigns that use it continue without it.
        </Confirm>
      )}
    </Card>
  );
}
