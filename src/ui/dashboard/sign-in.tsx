// Signing in with an API key.
import { useState } from "preact/hooks";
import { Form, TextField, Toggle } from "./kit/controls.tsx";
import { openApi, unwrap } from "./data/session.tsx";

const HINT = (
  <>The server prints one at its first start; <code>parley key create</code> makes more.</>
);

export function SignIn({ onKey }: { onKey(key: string, onDevice: boolean): void }) {
  const [key, setKey] = useState("");
  const [onDevice, setOnDevice] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (): Promise<void> => {
    const given = key.trim();
    try {
      await unwrap(openApi(given).GET("/user/me"));
      onKey(given, onDevice);
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <main class="sign-in">
      <div class="card">
        <h1><span class="mark" aria-hidden="true" />Parley</h1>
        <p>Assistants that talk with people: in text and on calls.</p>
        <Form submit="Sign in" onSubmit={submit} error={error}>
          <TextField
            label="API key" type="password" value={key} onInput={setKey} required
            autoComplete="current-password"
            hint={HINT}
          />
          <Toggle
            label="Stay signed in on this device" value={onDevice} onInput={setOnDevice}
          />
        </Form>
      </div>
      <p class="links"><a href="/docs">API reference</a></p>
    </main>
  );
}
