// Searches the assistant's knowledge beside the reply that a person writes.
import { useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useAssistants } from "#ui/dashboard/data/lists.ts";
import { Button, sends, TextField } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork } from "#ui/dashboard/kit/dialog.tsx";

const FOUND_MAX = 5;
const QUESTION_CHARS_MAX = 2000;

interface Found {
  document: string;
  document_id: number;
  chunk: number;
  text: string;
}

export function Knowledge({ assistantUuid, asked, onChosen }: {
  assistantUuid: string;
  /** The visitor's last message, as the most likely search. */
  asked: string;
  onChosen(text: string): void;
}) {
  const api = useApi();
  const { isBusy, run } = useToastedWork();
  const [question, setQuestion] = useState("");
  const [found, setFound] = useState<Found[] | null>(null);
  const assistant = useAssistants().value?.find(({ uuid }) => uuid === assistantUuid);
  const id = assistant?.knowledgebase_id;
  if (!id) return null;
  const search = (): void => run(async () => {
    const query = question.trim() || asked;
    if (query === "") return;
    const { data } = await unwrap(api.POST("/user/knowledgebases/{id}/search", {
      params: { path: { id } }, body: { query },
    }));
    setFound(data.results.slice(0, FOUND_MAX));
  });
  return (
    <details class="inbox-knowledge">
      <summary>Search the knowledgebases</summary>
      <form class="inbox-tools" aria-label="Knowledge" onSubmit={sends(search)}>
        <TextField
          label="Question" hidesLabel value={question} onInput={setQuestion} autoComplete="off"
          maxLength={QUESTION_CHARS_MAX} placeholder={asked || "What to search for"}
        />
        <Button type="submit" isBusy={isBusy}>Look it up</Button>
      </form>
      <div role="status">
        {found?.length === 0 && <p class="soft">Nothing found.</p>}
        {found && found.length > 0 && (
          <ul aria-label="Found">
            {found.map(({ document, document_id: source, chunk, text }) => (
              <li key={`${source} ${chunk}`}>
                <strong>{document}</strong>
                <p tabIndex={0} role="group" aria-label={document}>{text}</p>
                <Button kind="quiet" onClick={() => onChosen(text)}>Insert into the reply</Button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </details>
  );
}
