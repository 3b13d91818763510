// A new key: its name, its scopes and its expiry. Its token is shown only once.
import { useState } from "preact/hooks";
import { dayAfter } from "#core/days.ts";
import { dayStart } from "#core/zones.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, Form, SelectField, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Copyable } from "#ui/dashboard/kit/copy.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { Notice } from "#ui/dashboard/kit/layout.tsx";
import { shownZone } from "#ui/dashboard/kit/zone.ts";

const SECOND_MS = 1000;
const DAY_MS = 24 * 3600 * 1000;
const EXPIRIES = [
  { value: "", label: "Never" }, { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" }, { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" }, { value: "day", label: "On a day…" },
];
const SCOPES = [
  { value: "read write", label: "Read and write" },
  { value: "read", label: "Read only" },
];

/** An instant for the API; null: never. */
function expiryOf(choice: string, day: string): string | null {
  if (choice === "") return null;
  // A day lasts until its end in the zone that is shown.
  if (choice === "day") {
    const endMs = dayStart(dayAfter(day), shownZone()) / 1000;
    return new Date(endMs - SECOND_MS).toISOString();
  }
  return new Date(Date.now() + Number(choice) * DAY_MS).toISOString();
}

export function NewKey({ onClose, onCreated }: { onClose(): void; onCreated(): void }) {
  const [token, setToken] = useState<string | null>(null);
  const take = (given: string): void => {
    setToken(given);
    onCreated();
  };
  return (
    <Dialog title={token === null ? "New API key" : "Your new key"} onClose={onClose}>
      {token === null
        ? <KeyForm onClose={onClose} onToken={take} />
        : (
          <>
            <Notice tone="warn">It is shown only this once. Keep it where you keep passwords.</Notice>
            <Copyable label="Token" text={token} />
            <div class="form-actions"><Button kind="main" onClick={onClose}>Done</Button></div>
          </>
        )}
    </Dialog>
  );
}

function KeyForm({ onClose, onToken }: { onClose(): void; onToken(token: string): void }) {
  const api = useApi();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState("read write");
  const [expiry, setExpiry] = useState("");
  const [day, setDay] = useState("");
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const create = async (): Promise<void> => {
    const { api_key: key } = await unwrap(api.POST("/user/api-keys", {
      body: {
        name: name.trim(), scopes: scopes.split(" ") as ("read" | "write")[],
        expires_at: expiryOf(expiry, day),
      },
    }));
    onToken(key.token);
  };
  return (
    <Form submit="Create" onSubmit={create} error={error} onError={setError} onCancel={onClose}>
      <TextField
        label="Name" value={name} onInput={setName} required maxLength={255} error={errors.name}
        placeholder="Website backend" autoComplete="off" hint="What uses it, so that you recognise it later."
      />
      <div class="form-row">
        <SelectField
          label="Access" value={scopes} onInput={setScopes} options={SCOPES} error={errors.scopes}
        />
        <SelectField
          label="Expires" value={expiry} onInput={setExpiry} options={EXPIRIES}
          error={expiry === "day" ? undefined : errors.expires_at}
        />
        {expiry === "day" && (
          <TextField
            label="Last day" type="date" value={day} onInput={setDay} required
            error={errors.expires_at}
          />
        )}
      </div>
    </Form>
  );
}
