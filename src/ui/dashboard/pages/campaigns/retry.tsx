// Calls leads again that failed for a certain reason.
import { useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { outcomeWords } from "#ui/dashboard/pages/leads/outcome-words.ts";

type RetryBody =
  paths["/user/campaigns/{id}/retry"]["post"]["requestBody"]["content"]["application/json"];

export function RetryButton({ campaignId: id, outcome, onDone }: {
  campaignId: number; outcome: string; onDone(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const [isAsking, setAsking] = useState(false);
  const retry = async (): Promise<void> => {
    const { message } = await unwrap(api.POST("/user/campaigns/{id}/retry", {
      params: { path: { id } }, body: { outcomes: [outcome] } as RetryBody,
    }));
    toasts.notify(message);
    onDone();
  };
  return (
    <>
      <Button needs="build" icon="calls" onClick={() => setAsking(true)}>Call again</Button>
      {isAsking && (
        <Confirm
          title={`Call again: ${outcomeWords(outcome)}?`} action="Call again" kind="main"
          onConfirm={retry} onClose={() => setAsking(false)}
        >
          Each of these leads is called once more, within the campaign’s hours and while it runs.
          Blocked numbers and people who were reached at another number are left out.
        </Confirm>
      )}
    </>
  );
}
