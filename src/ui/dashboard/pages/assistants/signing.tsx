// The secret with which a site signs its visitors' ids, so that visitors signed in there are
// recognized here. Shown once, when it is created.
import { useState } from "preact/hooks";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Copyable } from "#ui/dashboard/kit/copy.tsx";
import { Confirm, useToastedWork } from "#ui/dashboard/kit/dialog.tsx";
import { when } from "#ui/dashboard/kit/format.ts";
import { Card } from "#ui/dashboard/kit/layout.tsx";

const SNIPPET = `import { createHmac } from "node:crypto";
const hash = createHmac("sha256", secretFromYourSettings)
  .update(user.id).digest("hex");
// data-user-id={user.id} data-user-hash={hash}`;

export function Signing({ assistantId }: { assistantId: number }) {
  const api = useApi();
  const path = { params: { path: { id: assistantId } } };
  const { isBusy, run } = useToastedWork();
  const [secret, setSecret] = useState("");
  const [isAsking, setAsking] = useState(false);
  const { value, reload } = useData(`assistants/${assistantId}/identity`, () =>
    unwrap(api.GET("/user/assistants/{id}/identity-secret", path)));
  const make = async (): Promise<void> => {
    setSecret((await unwrap(api.POST("/user/assistants/{id}/identity-secret", path))).secret);
    reload();
  };
  return (
    <Card title="Visitors who have signed in">
      <div class="stack">
        <p>
          Your server signs the id of its visitor, and the tag gets <code>data-user-id</code> and{" "}
          <code>data-user-hash</code>: the visitor finds the same chat on every device.{" "}
          {value?.changed_at && `The secret was created ${when(value.changed_at)}.`}
        </p>
        {secret !== "" && (
          <>
            <Copyable label="Identity secret" text={secret} />
            <p>It is not shown again. Keep it on your server, never in the page.</p>
            <Copyable label="On your server" text={SNIPPET} />
          </>
        )}
        <p>
          <Button
            needs="build" isBusy={isBusy}
            onClick={() => (value?.is_set ? setAsking(true) : run(make))}
          >
            {value?.is_set ? "New secret" : "Create a secret"}
          </Button>
        </p>
      </div>
      {isAsking && (
        <Confirm
          title="Create a new secret?" action="Create it" onConfirm={make}
          onClose={() => setAsking(false)}
        >
          For one day what the old one has signed is accepted as well. Then it is void.
        </Confirm>
      )}
    </Card>
  );
}
