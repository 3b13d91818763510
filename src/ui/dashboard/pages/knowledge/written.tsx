// Documents that are written by hand, new or changed: a text, or a table of questions and answers.
import { useState } from "preact/hooks";
import { useEdited } from "#ui/dashboard/data/meanwhile.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useFresh } from "#ui/dashboard/data/use-data.ts";
import { Button, Form, TextArea, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { Loaded } from "#ui/dashboard/kit/layout.tsx";
import type { Document, QuestionAndAnswer } from "./types.ts";

const NAME_CHARS_MAX = 255;
const TEXT_CHARS_MAX = 200_000;
const QUESTIONS_MAX = 500;
const QUESTION_CHARS_MAX = 500;
const ANSWER_CHARS_MAX = 3000;

type Type = "text" | "faq";
interface Draft {
  name: string;
  text: string;
  questions: QuestionAndAnswer[];
}
type Written = { text: string } | { questions: QuestionAndAnswer[] };

const NOTHING: QuestionAndAnswer = { question: "", answer: "" };

const writtenOf = (type: Type, { text, questions }: Draft): Written =>
  (type === "text" ? { text } : { questions });

/** Leaves out rows in which nothing was written, but keeps at least one. */
const whole = (pairs: QuestionAndAnswer[]): QuestionAndAnswer[] => {
  const filled = pairs.filter(({ question, answer }) => `${question}${answer}`.trim() !== "");
  return filled.length === 0 ? [NOTHING] : filled;
};

interface DialogProps {
  knowledgebaseId: number;
  onDone(): void;
  onClose(): void;
}

export function WriteDialog({ type, knowledgebaseId: id, onDone, onClose }: DialogProps & {
  type: Type;
}) {
  const api = useApi();
  const save = async (draft: Draft): Promise<void> => {
    await unwrap(api.POST("/user/knowledgebases/{id}/documents", {
      params: { path: { id } },
      body: { name: draft.name, type, ...writtenOf(type, draft) },
    }));
    onDone();
  };
  return (
    <Dialog title={type === "text" ? "Write a text" : "Questions and answers"} isWide onClose={onClose}>
      <Writing
        type={type} submit="Add" value={{ name: "", text: "", questions: [NOTHING] }}
        onSave={save} onClose={onClose}
      />
    </Dialog>
  );
}

export function ChangeWritten({ knowledgebaseId, document, onDone, onClose }: DialogProps & {
  document: Document;
}) {
  const api = useApi();
  const params = { path: { id: knowledgebaseId, document_id: document.id } };
  const type = document.type === "text" ? "text" : "faq";
  const read = async (): Promise<Draft> => {
    const { data } = await unwrap(
      api.GET("/user/knowledgebases/{id}/documents/{document_id}", { params }));
    return { name: data.name, text: data.text ?? "", questions: data.questions ?? [NOTHING] };
  };
  const written = useFresh(read);
  const save = async (draft: Draft): Promise<void> => {
    await unwrap(api.PATCH("/user/knowledgebases/{id}/documents/{document_id}", {
      params, body: { name: draft.name, ...writtenOf(type, draft) },
    }));
    onDone();
  };
  return (
    <Dialog title={document.name} isWide onClose={onClose}>
      <Loaded data={written}>
        {(value) => (
          <Writing
            type={type} submit="Save" value={value} read={read} onSave={save} onClose={onClose}
          />
        )}
      </Loaded>
    </Dialog>
  );
}

function Writing({ type, submit, value, read, onSave, onClose }: {
  type: Type; submit: string; value: Draft; onSave(draft: Draft): Promise<void>; onClose(): void;
  /** Reads the current content again. */
  read?: () => Promise<Draft>;
}) {
  const edited = useEdited(value);
  const { fields: draft, set: change } = edited;
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const save = async (): Promise<void> => {
    change({ questions: whole(draft.questions) });
    const sent = read ? edited.onto(await read()) : draft;
    await onSave({ ...sent, questions: whole(sent.questions) });
    onClose();
  };
  return (
    <Form submit={submit} error={error} onError={setError} onCancel={onClose} onSubmit={save}>
      <TextField
        label="Title" required maxLength={NAME_CHARS_MAX} value={draft.name} error={errors.name}
        onInput={(name) => change({ name })} autoComplete="off"
        placeholder={type === "text" ? "House rules" : "What people ask most"}
      />
      {type === "text" ? (
        <TextArea
          label="Text" rows={14} maxLength={TEXT_CHARS_MAX} value={draft.text} error={errors.text}
          onInput={(text) => change({ text })}
          hint="Lines that begin with # are headings, which help to find what is below them"
        />
      ) : (
        <Pairs
          pairs={draft.questions} errors={errors} onInput={(questions) => change({ questions })}
        />
      )}
    </Form>
  );
}

function Pairs({ pairs, errors, onInput }: {
  pairs: QuestionAndAnswer[]; errors: Record<string, string>;
  onInput(pairs: QuestionAndAnswer[]): void;
}) {
  const put = (at: number, changes: Partial<QuestionAndAnswer>): void =>
    onInput(pairs.map((pair, index) => (index === at ? { ...pair, ...changes } : pair)));
  return (
    <>
      {errors.questions && <p class="form-error" role="alert">{errors.questions}</p>}
      <ul class="knowledge-pairs" aria-label="Questions and answers">
        {pairs.map(({ question, answer }, at) => (
          <li key={at}>
            <TextArea
              label={`Question ${at + 1}`} rows={2} maxLength={QUESTION_CHARS_MAX} value={question}
              onInput={(text) => put(at, { question: text })}
              error={errors[`questions.${at}.question`]}
            />
            <TextArea
              label={`Answer ${at + 1}`} rows={2} maxLength={ANSWER_CHARS_MAX} value={answer}
              onInput={(text) => put(at, { answer: text })}
              error={errors[`questions.${at}.answer`]}
            />
            <Button
              kind="quiet" icon="close" label={`Remove question ${at + 1}`}
              disabled={pairs.length === 1}
              onClick={() => onInput(pairs.filter((_, index) => index !== at))}
            />
          </li>
        ))}
      </ul>
      <Button
        icon="add" disabled={pairs.length >= QUESTIONS_MAX}
        onClick={() => onInput([...pairs, NOTHING])}
      >
        Another question
      </Button>
    </>
  );
}
