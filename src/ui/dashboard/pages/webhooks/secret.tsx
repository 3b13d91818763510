// The secret of an endpoint, shown once it was created or rotated: receivers verify signatures
// with it.
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Copyable } from "#ui/dashboard/kit/copy.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import type { Endpoint } from "./webhooks-data.ts";

export function Secret({ endpoint, isRotated = false, onClose }: {
  endpoint: Endpoint; isRotated?: boolean; onClose(): void;
}) {
  return (
    <Dialog title={isRotated ? "New secret" : "Endpoint created"} onClose={onClose}>
      <p>
        Your server checks with this secret that a message is from here. It is not shown again on
        this page.
      </p>
      <Copyable label="Secret" text={endpoint.secret} />
      <p><small>
        {isRotated && "For one day, messages are also signed with the old one. "}
        Any <a href="https://www.standardwebhooks.com" rel="noopener" target="_blank">Standard
        Webhooks</a> library can verify them.
      </small></p>
      <div class="form-actions"><Button kind="main" onClick={onClose}>Done</Button></div>
    </Dialog>
  );
}
