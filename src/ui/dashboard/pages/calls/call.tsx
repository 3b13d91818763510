// One call: watched and steered while it lasts, its record once it is over. The page goes from one
// to the other by itself.
import { useCallback, useEffect, useState } from "preact/hooks";
import type { Frame } from "#client/client.ts";
import { MISSED, useEvents } from "#ui/dashboard/data/live.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Empty, Loaded, Page } from "#ui/dashboard/kit/layout.tsx";
import { usePhone } from "#ui/dashboard/later.tsx";
import type { PageProps } from "#ui/dashboard/page.ts";
import { customerOf, isFinal, typeWords } from "./call-state.ts";
import { LiveCallView } from "./live-call.tsx";
import { PastCallView } from "./past-call.tsx";
import "./calls.css";

const BACK = { href: "#/calls", label: "Calls" };

export function CallPage({ params }: PageProps) {
  const id = Number(params.id);
  return Number.isSafeInteger(id) && id > 0
    ? <OneCall key={id} id={id} />
    : <Page title="Call" back={BACK}><Empty icon="calls" title="There is no such call." /></Page>;
}

function OneCall({ id }: { id: number }) {
  const api = useApi();
  const data = useData(`calls/${id}`, () => unwrap(api.GET("/user/calls/{id}", {
    params: { path: { id } },
  })));
  const phone = usePhone();
  const [isDeleted, setDeleted] = useState(false);
  const { value: call, reload } = data;
  useEvents(["call_ended", "call_deleted"], useCallback((frame: Frame) => {
    if (frame.type !== MISSED.type && frame.call_id !== id) return;
    if (frame.type === "call_deleted") setDeleted(true);
    else reload();
  }, [id, reload]));
  useEffect(() => setDeleted(false), [id]);
  const title = call ? `${typeWords(call.type)}: ${phone(customerOf(call))}` : `Call ${id}`;
  if (isDeleted) {
    return (
      <Page title={title} back={BACK}><Empty icon="calls" title="This call was deleted." /></Page>
    );
  }
  const frame = { title, back: BACK };
  if (call && isFinal(call.status)) {
    return <PastCallView {...frame} data={{ ...data, value: call }} />;
  }
  if (call) return <LiveCallView {...frame} record={call} onOver={reload} error={data.error} />;
  return <Page title={title} back={BACK}><Loaded data={data}>{() => null}</Loaded></Page>;
}
