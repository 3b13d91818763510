// Saves a reply as a canned one.
import { useState } from "preact/hooks";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form, TextArea, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";

export function SaveReply({ text: written, onClose, onSaved }: {
  text: string; onClose(): void; onSaved(): void;
}) {
  const api = useApi();
  const [shortcut, setShortcut] = useState("");
  const [text, setText] = useState(written);
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const save = async (): Promise<void> => {
    setError(null);
    await unwrap(api.POST("/user/canned-replies", { body: { shortcut, text } }));
    onSaved();
    onClose();
  };
  return (
    <Dialog title="Save as canned reply" onClose={onClose}>
      <Form submit="Keep" error={error} onError={setError} onSubmit={save} onCancel={onClose}>
        <TextField
          label="Shortcut" value={shortcut} onInput={setShortcut} maxLength={40}
          hint="One word to find it" error={errors.shortcut}
        />
        <TextArea
          label="Text" value={text} onInput={setText} error={errors.text}
          hint="{{customer_name}} and other variables are filled in"
        />
      </Form>
    </Dialog>
  );
}
