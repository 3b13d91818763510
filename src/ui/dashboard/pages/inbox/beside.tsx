// Shown beside a conversation in the inbox: its labels, and how its visitor wants to be reached.
import type { ComponentChildren } from "preact";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { when } from "#ui/dashboard/kit/format.ts";
import { Card, Facts } from "#ui/dashboard/kit/layout.tsx";
import { useLabels } from "#ui/dashboard/pages/assistants/lookups.ts";

/** The account's labels, each on or off; nothing where it has none. */
export function Labels({ uuid, onChanged }: { uuid: string; onChanged(): void }) {
  const api = useApi();
  const toasts = useToasts();
  const { isBusy, run } = useToastedWork();
  const labels = useLabels().value ?? [];
  const path = { params: { path: { uuid } } };
  const own = useData(`conversations/${uuid}/labels`, () =>
    unwrap(api.GET("/user/conversations/{uuid}/labels", path)));
  if (labels.length === 0 || !own.value) return null;
  const has = new Set(own.value.data.map(({ id }) => id));
  const set = async ({ id, name }: { id: number; name: string }, isOn: boolean): Promise<void> => {
    await unwrap(api.POST("/user/conversations/bulk-label", {
      body: { conversation_ids: [uuid], label_id: id, remove: !isOn },
    }));
    own.reload();
    onChanged();
    toasts.notify(
      isOn ? `It has the label “${name}”.` : `It no longer has the label “${name}”.`,
      () => set({ id, name }, !isOn));
  };
  return (
    <Card title="Labels">
      <div class="stack">
        {labels.map((label) => (
          <Toggle
            key={label.id} label={label.name} needs="answer" value={has.has(label.id)}
            disabled={isBusy} onInput={(isOn) => run(() => set(label, isOn))}
          />
        ))}
      </div>
    </Card>
  );
}

const given = (label: string, value: ComponentChildren): [string, ComponentChildren][] =>
  (value ? [[label, value]] : []);

export function Callback({ uuid }: { uuid: string }) {
  const api = useApi();
  const { isBusy, run } = useToastedWork();
  const params = { params: { path: { uuid } } };
  const { value } = useData(`conversations/${uuid}/callbacks`, () =>
    unwrap(api.GET("/user/conversations/{uuid}/callbacks", params)),
  ["callback_requested", "callback_done"]);
  const [newest] = value?.data ?? [];
  if (!newest) return null;
  const { name, phone, email, wish, time, created_at: at, done_at: doneAt } = newest;
  return (
    <Card title={doneAt ? "Callback done" : "Wants to be contacted"}>
      <Facts rows={[
        ["Name", name],
        ...given("Phone", phone && <a href={`tel:${phone}`}>{phone}</a>),
        ...given("E-mail", email && <a href={`mailto:${email}`}>{email}</a>),
        ...given("Request", wish), ...given("Time", time), ["Asked", when(at)],
        ...given("Done", doneAt && when(doneAt)),
      ]} />
      {!doneAt && (
        <Button
          needs="answer" isBusy={isBusy}
          onClick={() => run(() =>
            unwrap(api.POST("/user/conversations/{uuid}/callback/done", params)))}
        >Reached</Button>
      )}
    </Card>
  );
}
