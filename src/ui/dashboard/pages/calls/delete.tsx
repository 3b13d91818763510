// Deletes one call after a question; and the bar for calls that are selected in the list, which
// deletes them or exports them as a file.
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { Rows } from "#ui/dashboard/data/rows.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { ChosenBar, NAMED_MAX, namesOf, type Chosen } from "#ui/dashboard/kit/chosen.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import { ExportChosen } from "#ui/dashboard/kit/list-tools.tsx";
import { plural } from "#ui/dashboard/kit/texts.ts";
import type { CallRecord } from "./call-state.ts";

export function DeleteCall({ id, onClose }: { id: number; onClose(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const [, navigate] = useLocation();
  const remove = async (): Promise<void> => {
    const { message } = await unwrap(api.DELETE("/user/calls/{id}", { params: { path: { id } } }));
    toasts.notify(message);
    navigate("/calls");
  };
  return (
    <Confirm title="Delete this call?" action="Delete call" onConfirm={remove} onClose={onClose}>
      Its transcript and recording are deleted too and cannot be recovered. What it cost stays in
      the ledger.
    </Confirm>
  );
}

interface ChosenCallsProps {
  chosen: Chosen<CallRecord>;
  list: Rows<CallRecord>;
  nameOf(call: CallRecord): string;
}

export function ChosenCalls({ chosen, list, nameOf }: ChosenCallsProps) {
  const [asked, setAsked] = useState<CallRecord[] | null>(null);
  const [live, setLive] = useState<CallRecord[]>([]);
  return (
    <>
      {live.length > 0 && (
        <Notice tone="warn">
          <span>
            These have not ended, so they were not deleted: {namesOf(live, nameOf, Infinity)}
          </span>
          <button type="button" class="quiet" onClick={() => setLive([])}>Dismiss</button>
        </Notice>
      )}
      <ChosenBar label="Selected calls" chosen={chosen}>
        <ExportChosen name="calls" rows={chosen.rows} list={list} />
        <Button needs="build" kind="danger" onClick={() => setAsked(chosen.rows)}>Delete</Button>
      </ChosenBar>
      {asked && (
        <DeleteMany
          some={asked} nameOf={nameOf} onClose={() => setAsked(null)}
          onDone={(ids) => {
            setLive(asked.filter(({ id }) => ids.includes(id)));
            chosen.drop(asked.map(({ id }) => id).filter((id) => !ids.includes(id)));
          }}
        />
      )}
    </>
  );
}

function DeleteMany({ some, nameOf, onDone, onClose }: {
  some: CallRecord[]; nameOf(call: CallRecord): string; onDone(live: number[]): void;
  onClose(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const remove = async (): Promise<void> => {
    const { deleted, live } = await unwrap(api.POST("/user/calls/bulk-delete", {
      body: { call_ids: some.map(({ id }) => id) },
    }));
    toasts.notify(plural(deleted.length, "{count} call is deleted.", "{count} calls are deleted."));
    onDone(live);
  };
  return (
    <Confirm
      title={plural(some.length, "Delete {count} call?", "Delete {count} calls?")}
      action="Delete" onConfirm={remove} onClose={onClose}
    >
      {namesOf(some, nameOf, NAMED_MAX)}:
      {" "}<strong>their transcripts and recordings are deleted too and cannot be recovered.</strong>
      {" "}What they cost stays in the ledger.
    </Confirm>
  );
}
