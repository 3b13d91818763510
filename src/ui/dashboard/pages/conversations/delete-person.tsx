// Deletes everything about one person: the question says what is deleted and what stays. Shown on
// the pages of a conversation, a call and a lead.
import { useEffect, useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { plural } from "#ui/dashboard/kit/texts.ts";

/** Identifies the person as the API does. */
type Person = { conversation_id: string } | { phone_number: string };

interface Counts {
  conversations: number;
  calls: number;
  leads: number;
}

/** `home`: the page to go to once the record on this one is deleted. */
export function DeletePerson({ person, home }: { person: Person; home: string }) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button kind="quiet" needs="build" onClick={() => setAsking(true)}>Erase this person</Button>
      {isAsking && <Question person={person} home={home} onClose={() => setAsking(false)} />}
    </>
  );
}

const listOf = ({ conversations, calls, leads }: Counts): string => [
  plural(conversations, "{count} conversation", "{count} conversations"),
  plural(calls, "{count} call", "{count} calls"), plural(leads, "{count} lead", "{count} leads"),
].join(", ");

function Question({ person, home, onClose }: { person: Person; home: string; onClose(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const [counts, setCounts] = useState<Counts | null>(null);
  const ask = (isDry: boolean) => unwrap(api.POST("/user/people/delete", {
    body: { ...person, dry_run: isDry },
  }));
  useEffect(() => {
    ask(true).then(setCounts, (error: unknown) => {
      toasts.fail(error);
      onClose();
    });
  }, []);
  if (!counts) return null;
  return (
    <Confirm
      title="Erase all of this person’s data?" action="Erase all" onClose={onClose}
      onConfirm={async () => {
        const { busy, ...gone } = await ask(false);
        toasts.notify(`Erased: ${listOf(gone)}.`);
        if (busy > 0) {
          toasts.notify(plural(busy,
            "{count} stays, because it is in progress. Erase again afterwards.",
            "{count} stay, because they are in progress. Erase again afterwards."));
        }
        location.hash = home;
      }}
    >
      <strong>{listOf(counts)} are deleted for good</strong>, with messages, files, notes,
      transcripts and recordings. What they cost stays in the ledger, who erased them in the audit
      log, and a number nobody may call stays blocked.
    </Confirm>
  );
}
