// What can be done with a campaign as a whole: start, stop, edit, delete.
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { Campaign } from "#ui/dashboard/data/lists.ts";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Status } from "#ui/dashboard/kit/layout.tsx";
import { whenWords } from "./words.ts";

export function Actions({ campaign, onChange }: { campaign: Campaign; onChange(): void }) {
  const { id, name, status } = campaign;
  const api = useApi();
  const toasts = useToasts();
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState<"start" | "stop" | "delete" | null>(null);
  const [reason, setReason] = useState("");
  const close = (): void => setAsking(null);
  const act = async (action: "start" | "stop", why = ""): Promise<void> => {
    const { message } = await unwrap(api.POST("/user/campaigns/update-status", {
      body: { campaign_id: id, action, ...why.trim() && { reason: why.trim() } },
    }));
    setReason("");
    // A stop can be undone, but not a start: the calls it has made cannot be taken back.
    toasts.notify(message, action === "stop" ? () => act("start") : undefined);
    onChange();
  };
  const remove = async (): Promise<void> => {
    const { message } = await unwrap(
      api.DELETE("/user/campaigns/{id}", { params: { path: { id } } }));
    toasts.notify(message);
    navigate("/campaigns");
  };
  return (
    <>
      <Status code={status} />
      {status === "in-progress"
        ? <Button needs="build" icon="stop" onClick={() => setAsking("stop")}>Stop</Button>
        : <Button kind="main" needs="build" icon="play" onClick={() => setAsking("start")}>Start</Button>}
      <Needs right="build"><a class="button" href={`#/campaigns/${id}/edit`}>Edit</a></Needs>
      <Button kind="quiet" needs="build" onClick={() => setAsking("delete")}>Delete</Button>
      {asking === "start" && (
        <Confirm
          title={`Start ${name}?`} action="Start calling" kind="main"
          onConfirm={() => act("start")} onClose={close}
        >
          People are called as soon as its hours allow ({whenWords(campaign)},{" "}
          {campaign.timezone.replaceAll("_", " ")}), {campaign.max_calls_in_parallel} at a time. Each
          call is charged as usual. You can stop it at any time.
        </Confirm>
      )}
      {asking === "stop" && (
        <Confirm
          title={`Stop ${name}?`} action="Stop calling" kind="main"
          onConfirm={() => act("stop", reason)} onClose={close}
        >
          <p>
            Calls in progress continue to their end. Nobody else is called until you start it again.
          </p>
          <TextField
            label="Reason" value={reason} onInput={setReason} maxLength={255} autoComplete="off"
            hint="Shown on the campaign’s page"
          />
        </Confirm>
      )}
      {asking === "delete" && (
        <Confirm title={`Delete ${name}?`} action="Delete" onConfirm={remove} onClose={close}>
          It is stopped and its leads are deleted with it; past calls stay. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}
