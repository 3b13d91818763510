// Trying a knowledgebase: what an assistant would find for a question, how good it is, and where it
// is from.
import { useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Card, Empty, Status } from "#ui/dashboard/kit/layout.tsx";
import type { Found } from "./types.ts";
import { decimal } from "#ui/dashboard/kit/format.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

const QUESTION_CHARS_MAX = 2000;

const percent = (share: number): string => `${Math.round(share * 100)} %`;

export function TrySearch({ knowledgebaseId: id }: { knowledgebaseId: number }) {
  const api = useApi();
  const [question, setQuestion] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [tried, setTried] = useState<{ results: Found[]; by_meaning: boolean } | null>(null);
  const ask = async (): Promise<void> => {
    const { data } = await unwrap(api.POST("/user/knowledgebases/{id}/search", {
      params: { path: { id } }, body: { query: question },
    }));
    setTried(data);
    setError(null);
  };
  return (
    <Card title="Try a question" class="knowledge-try">
      <Form submit="Search" error={error} onError={setError} onSubmit={ask}>
        <TextField
          label="Question" required value={question} onInput={setQuestion} autoComplete="off"
          maxLength={QUESTION_CHARS_MAX} placeholder="What does a city bike cost?"
          hint="Ask as a customer would. It shows what an assistant would find, and is free."
        />
      </Form>
      <div role="status">{tried && <Results {...tried} />}</div>
    </Card>
  );
}

function Results({ results, by_meaning: isByMeaning }: { results: Found[]; by_meaning: boolean }) {
  if (results.length === 0) {
    return (
      <Empty icon="search" title="Nothing found">
        Other words may help, or a document that answers it.
      </Empty>
    );
  }
  return (
    <>
      <p class="soft">
        {isByMeaning ? "Found by words and by meaning." : "Found by words only."}{" "}
        An assistant gets the passages marked “given”.
      </p>
      <ol class="knowledge-found">
        {results.map((one) => <Result key={`${one.document_id} ${one.chunk}`} found={one} />)}
      </ol>
    </>
  );
}

function Result({ found }: { found: Found }) {
  const { document, page, url, headings, text, score, words, meaning, is_given: isGiven } = found;
  const scores = [
    t(`score ${percent(score)}`),
    ...(words ? [t("words {score} (no. {place})", {
      score: decimal(words.score, 2), place: words.place,
    })] : []),
    ...(meaning ? [t("meaning {score} (no. {place})", {
      score: decimal(meaning.score, 2), place: meaning.place,
    })] : []),
  ];
  return (
    <li>
      <p class="knowledge-source">
        <strong>{document}</strong>
        {page !== null && <span>page {page}</span>}
        {isGiven && <Status code="given" tone="good" />}
      </p>
      {url !== null && <p class="soft knowledge-url">{url}</p>}
      {headings.length > 0 && <p class="soft">{headings.join(" › ")}</p>}
      <p class="knowledge-text">{text}</p>
      <p class="soft">{scores.join(", ")}</p>
    </li>
  );
}
