// The do-not-call list: numbers that nobody in the account calls.
import { useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { usePages } from "#ui/dashboard/data/rows.ts";
import { fieldErrors, messageOf, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, sends, TextField, useWork } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Page, Tabs } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";
import { TABS } from "./leads.tsx";
import "./leads.css";

type BlockedGet = paths["/user/blocked-numbers"]["get"];
type Blocked = BlockedGet["responses"][200]["content"]["application/json"]["data"][number];

const columnsFor = (remove: (blocked: Blocked) => void): Column<Blocked>[] => [
  {
    title: "Number", grow: 2.2,
    cell: ({ phone_number: number, reason }) => (
      <TwoLines main={formatPhone(number)} sub={reason} />
    ),
  },
  {
    title: "Since", priority: 2, align: "end",
    cell: ({ created_at: at }) => <time title={whenExactly(at)}>{when(at)}</time>,
  },
  {
    title: "Remove", align: "end", grow: "none",
    cell: (blocked) => (
      <Button
        kind="quiet" needs="answer" label={`Remove ${blocked.phone_number}`}
        onClick={() => remove(blocked)}
      >
        Remove
      </Button>
    ),
  },
];

export function BlockedNumbers() {
  const api = useApi();
  const toasts = useToasts();
  const [removing, setRemoving] = useState<Blocked | null>(null);
  const rows = usePages<Blocked>("blocked numbers", async (page, perPage) => {
    const { data, total } = await unwrap(api.GET("/user/blocked-numbers", {
      params: { query: { page, per_page: perPage } },
    }));
    return { rows: data, total };
  });
  const unblock = async (number: string): Promise<string> => {
    const { message } = await unwrap(api.DELETE("/user/blocked-numbers", {
      params: { query: { phone_number: number } },
    }));
    rows.reload();
    return message;
  };
  const block = async (body: Omit<Blocked, "created_at">) => {
    const done = await unwrap(api.POST("/user/blocked-numbers", { body }));
    rows.reload();
    return done;
  };
  const remove = async ({ phone_number: number, reason }: Blocked): Promise<void> =>
    toasts.notify(await unblock(number), () => block({ phone_number: number, reason }));
  const add = async (given: Omit<Blocked, "created_at">): Promise<void> => {
    const { message, data, was_blocked: wasBlocked, blacklisted_leads: leads } = await block(given);
    // No undo if leads were blacklisted: unblocking does not put them back in the queue.
    const isAlone = !wasBlocked && leads === 0;
    toasts.notify(message, isAlone ? () => unblock(data.phone_number) : undefined);
  };
  return (
    <Page title="Blocked numbers">
      <Tabs tabs={TABS} current="blocked" />
      <Card title="Block a number"><Block add={add} /></Card>
      <Card class="flush">
        <Table
          label="Blocked numbers" columns={columnsFor(setRemoving)} rows={rows}
          rowKey={({ phone_number: number }) => number}
          empty={(
            <Empty icon="leads" title="No number is blocked">
              No campaign and no call of yours rings a number on this list.
            </Empty>
          )}
        />
      </Card>
      {removing !== null && (
        <Confirm
          title={`Remove ${formatPhone(removing.phone_number)} from the list?`} action="Remove"
          onClose={() => setRemoving(null)}
          onConfirm={() => remove(removing)}
        >
          It may be called again. Its leads stay blacklisted until you put them back in the queue.
        </Confirm>
      )}
    </Page>
  );
}

function Block({ add }: { add(given: Omit<Blocked, "created_at">): Promise<void> }) {
  const [number, setNumber] = useState("");
  const [reason, setReason] = useState("");
  const [error, setError] = useState<unknown>(null);
  const work = useWork(setError);
  const errors = fieldErrors(error);
  const save = async (): Promise<void> => {
    await add({ phone_number: number.trim(), reason: reason.trim() || null });
    setNumber("");
    setReason("");
    setError(null);
  };
  return (
    <form class="leads-block" onSubmit={sends(() => work.run(save))}>
      <TextField
        label="Phone number" type="tel" required value={number} onInput={setNumber}
        placeholder="+15550100123" maxLength={64} autoComplete="off"
        error={errors.phone_number ?? (error && !errors.reason ? messageOf(error) : undefined)}
      />
      <TextField
        label="Reason" value={reason} onInput={setReason} maxLength={255} autoComplete="off"
        placeholder="Asked not to be called" error={errors.reason}
      />
      <Button kind="main" needs="answer" type="submit" isBusy={work.isBusy}>Block</Button>
    </form>
  );
}
