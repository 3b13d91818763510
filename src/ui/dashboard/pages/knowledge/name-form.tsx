// Name and description of a new or existing knowledgebase or document.
import { useState } from "preact/hooks";
import { fieldErrors } from "#ui/dashboard/data/session.tsx";
import { Form, TextArea, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";

interface Named {
  name: string;
  description: string | null;
}

const CHARS_MAX = 255;

export function NameDialog({ title, submit, value, onSave, onClose }: {
  title: string; submit: string; value?: Named | undefined;
  /** Its errors are shown. */
  onSave(value: Named): Promise<void>; onClose(): void;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <NameForm submit={submit} value={value} onSave={onSave} onClose={onClose} />
    </Dialog>
  );
}

export function NameForm({ submit, value, onSave, onClose }: {
  submit: string; value?: Named | undefined;
  onSave(value: Named): Promise<void>; onClose(): void;
}) {
  const [name, setName] = useState(value?.name ?? "");
  const [description, setDescription] = useState(value?.description ?? "");
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  return (
    <Form
      submit={submit} error={error} onError={setError} onCancel={onClose}
      onSubmit={() => onSave({ name: name.trim(), description: description.trim() || null })
        .then(onClose)}
    >
      <TextField
        label="Name" required maxLength={CHARS_MAX} value={name} onInput={setName}
        error={errors.name} autoComplete="off"
      />
      <TextArea
        label="Description" rows={2} maxLength={CHARS_MAX} value={description}
        onInput={setDescription} hint="For you and your colleagues" error={errors.description}
      />
    </Form>
  );
}
