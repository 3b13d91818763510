// The text extracted from a document: the chunks that searches find, each with its page, a few at a
// time.
import { useEffect, useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, useWork } from "#ui/dashboard/kit/controls.tsx";
import { count } from "#ui/dashboard/kit/format.ts";
import { Failure, Skeleton } from "#ui/dashboard/kit/layout.tsx";
import type { Chunk } from "./types.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

const PER_PAGE = 10;

export function Chunks({ knowledgebaseId: id, documentId }: {
  knowledgebaseId: number; documentId: number;
}) {
  const api = useApi();
  const [shown, setShown] = useState<{ chunks: Chunk[]; total: number } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const { isBusy, run } = useWork(setError);
  const more = (): void => run(async () => {
    const before = shown?.chunks ?? [];
    const { data, total } = await unwrap(
      api.GET("/user/knowledgebases/{id}/documents/{document_id}/chunks", {
        params: {
          path: { id, document_id: documentId },
          query: { page: before.length / PER_PAGE + 1, per_page: PER_PAGE },
        },
      }));
    setShown({ chunks: [...before, ...data], total });
    setError(null);
  });
  useEffect(more, []);
  return (
    <section class="knowledge-read" aria-label="What was read">
      <h3>What was read{shown && ` (${count(shown.total)})`}</h3>
      {Boolean(error) && <Failure error={error} retry={more} />}
      {!shown && !error && <Skeleton />}
      {shown?.total === 0 && <p class="soft">Nothing yet.</p>}
      <ol class="knowledge-found">
        {shown?.chunks.map((chunk) => <Piece key={chunk.chunk} chunk={chunk} />)}
      </ol>
      {shown && shown.chunks.length < shown.total && (
        <div class="form-actions"><Button isBusy={isBusy} onClick={more}>Show more</Button></div>
      )}
    </section>
  );
}

function Piece({ chunk: { headings, page, url, text } }: { chunk: Chunk }) {
  const place = [...(page === null ? [] : [t(`page ${page}`)]), ...(url === null ? [] : [url])];
  return (
    <li>
      {place.length > 0 && <p class="soft">{place.join(", ")}</p>}
      {headings.length > 0 && <p><strong>{headings.join(" › ")}</strong></p>}
      <p class="knowledge-text">{text}</p>
    </li>
  );
}
