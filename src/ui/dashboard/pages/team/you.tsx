// The reader's own password, and the browsers in which they are signed in.
import { useState } from "preact/hooks";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button, Form, TextField } from "#ui/dashboard/kit/controls.tsx";
import { useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { when } from "#ui/dashboard/kit/format.ts";
import { Card, Facts, Loaded } from "#ui/dashboard/kit/layout.tsx";

export function You({ hasPassword }: { hasPassword: boolean }) {
  const api = useApi();
  const toasts = useToasts();
  const sessions = useData("sessions", async () => (await unwrap(api.GET("/user/sessions"))).data);
  const end = async (id: number): Promise<void> => {
    await unwrap(api.DELETE("/user/sessions/{id}", { params: { path: { id } } }));
    sessions.reload();
  };
  return (
    <>
      <Card title="Your password"><Password hasPassword={hasPassword} onChanged={sessions.reload} /></Card>
      <Card title="Where you are signed in">
        <Loaded data={sessions}>
          {(rows) => (
            <Facts rows={rows.map((row) => [
              row.agent.slice(0, 60) || row.address,
              <>
                {row.address}, {when(row.created_at)}{" "}
                {row.is_this
                  ? "(this one)"
                  : (
                    <Button
                      kind="quiet" label={`Sign out of ${row.address}, ${when(row.created_at)}`}
                      onClick={() => void end(row.id).catch(toasts.fail)}
                    >Sign out</Button>
                  )}
              </>,
            ])} />
          )}
        </Loaded>
      </Card>
    </>
  );
}

function Password({ hasPassword, onChanged }: { hasPassword: boolean; onChanged(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const [current, setCurrent] = useState("");
  const [password, setPassword] = useState("");
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const save = async (): Promise<void> => {
    await unwrap(api.PUT("/user/password", {
      body: { password, ...hasPassword ? { current_password: current } : {} },
    }));
    setCurrent("");
    setPassword("");
    setError(null);
    toasts.notify("Your password is changed. You are signed out everywhere else.");
    onChanged();
  };
  return (
    <Form submit="Change password" onSubmit={save} error={error} onError={setError}>
      {hasPassword && (
        <TextField
          label="Current password" type="password" value={current} onInput={setCurrent} required
          autoComplete="current-password" error={errors.current_password}
        />
      )}
      <TextField
        label="New password" type="password" value={password} onInput={setPassword} required
        maxLength={256} autoComplete="new-password" hint="At least 10 characters."
        error={errors.password}
      />
    </Form>
  );
}
