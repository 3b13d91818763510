// Deletes one conversation, after a question: it cannot be taken back.
import { useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";

export function DeleteConversation({ uuid }: { uuid: string }) {
  const api = useApi();
  const toasts = useToasts();
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button needs="build" onClick={() => setAsking(true)}>Delete</Button>
      {isAsking && (
        <Confirm
          title="Delete the conversation?" action="Delete" onClose={() => setAsking(false)}
          onConfirm={async () => {
            await unwrap(api.DELETE("/user/conversations/{uuid}", { params: { path: { uuid } } }));
            toasts.notify("The conversation is deleted.");
            location.hash = "/conversations";
          }}
        >
          Its messages, files, notes and labels are deleted for good. What it cost stays in the
          ledger.
        </Confirm>
      )}
    </>
  );
}
