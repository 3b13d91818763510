// The assistants that use a knowledgebase, and adding or removing one.
import { useState } from "preact/hooks";
import { useAssistants, type Assistant } from "#ui/dashboard/data/lists.ts";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";
import { Button, SelectField } from "#ui/dashboard/kit/controls.tsx";
import { useToastedWork, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Card, Loaded } from "#ui/dashboard/kit/layout.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";

export function Users({ knowledgebaseId, onChange }: {
  knowledgebaseId: number; onChange(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const assistants = useAssistants({ freshMs: 0 });
  const { isBusy, run } = useToastedWork();
  const give = async (assistant: Assistant, to: number | null): Promise<void> => {
    await unwrap(api.PATCH("/user/assistant/{id}", {
      params: { path: { id: assistant.id } }, body: { knowledgebase_id: to },
    }));
    const before = assistant.knowledgebase_id;
    toasts.notify(
      to === knowledgebaseId
        ? t(`${assistant.name} uses it`)
        : t(`${assistant.name} no longer uses it`),
      () => give({ ...assistant, knowledgebase_id: to }, before));
    assistants.reload();
    onChange();
  };
  return (
    <Card title="Used by">
      <Loaded data={assistants}>
        {(all) => {
          const users = all.filter((one) => one.knowledgebase_id === knowledgebaseId);
          const others = all.filter((one) => one.knowledgebase_id !== knowledgebaseId);
          return (
            <>
              {users.length === 0 && <p class="soft">No assistant uses it.</p>}
              <ul class="knowledge-users">
                {users.map((one) => (
                  <li key={one.id}>
                    <a href={`#/assistants/${one.id}`}>{one.name}</a>
                    <Button
                      needs="build" kind="quiet" icon="close" label={`Remove it from ${one.name}`}
                      disabled={isBusy} onClick={() => run(() => give(one, null))}
                    />
                  </li>
                ))}
              </ul>
              {others.length > 0 && (
                <Needs right="build">
                  <Choose
                    others={others} isBusy={isBusy}
                    onChoose={(one) => run(() => give(one, knowledgebaseId))}
                  />
                </Needs>
              )}
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}

function Choose({ others, isBusy, onChoose }: {
  others: Assistant[]; isBusy: boolean; onChoose(assistant: Assistant): void;
}) {
  const [chosen, setChosen] = useState("");
  const assistant = others.find(({ id }) => String(id) === chosen);
  return (
    <div class="knowledge-give">
      <SelectField
        label="Add it to an assistant" value={assistant ? chosen : ""} onInput={setChosen}
        options={[
          { value: "", label: "Choose an assistant" },
          ...namedOptions(others),
        ]}
        {...(assistant?.knowledgebase_id ? { hint: "It replaces the one it uses now." } : {})}
      />
      <Button
        disabled={!assistant} isBusy={isBusy} onClick={() => assistant && onChoose(assistant)}
      >
        Add
      </Button>
    </div>
  );
}
