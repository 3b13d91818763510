// Has the server recompute the whole ledger, and says in plain words what it found.
import { useState } from "preact/hooks";
import type { paths, Parley } from "#client/client.ts";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, useWork } from "#ui/dashboard/kit/controls.tsx";
import { count, money, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Failure, Notice } from "#ui/dashboard/kit/layout.tsx";
import { plural } from "#ui/dashboard/kit/texts.ts";

type Found = paths["/user/ledger/verification"]["get"]["responses"][200]["content"]["application/json"];

interface Checked {
  found: Found;
  /**
   * The hash of the newest checked entry; null: a newer one was added meanwhile, or there is none.
   */
  head: string | null;
}

async function check(api: Parley): Promise<Checked> {
  const found = await unwrap(api.GET("/user/ledger/verification"));
  const { data: [newest] } = await unwrap(api.GET("/user/ledger", {
    params: { query: { per_page: 1 } },
  }));
  return { found, head: newest?.number === found.entries ? newest.hash : null };
}

export function Verification() {
  const api = useApi();
  const [checked, setChecked] = useState<Checked | null>(null);
  const [error, setError] = useState<unknown>(null);
  const { isBusy, run } = useWork(setError);
  const verify = (): void => run(async () => {
    setChecked(await check(api));
    setError(null);
  });
  return (
    <Card
      title="Proof that no entry was changed"
      actions={<Button icon="check" isBusy={isBusy} onClick={verify}>Verify the ledger</Button>}
    >
      <div class="stack" aria-live="polite">
        {!checked && !error && (
          <p class="soft">
            Each entry carries a hash of itself and of the one before it, so none can be changed or
            removed unnoticed. Verifying recomputes them all.
          </p>
        )}
        {Boolean(error) && <Failure error={error} retry={verify} />}
        {checked && !error && <Result {...checked} />}
      </div>
    </Card>
  );
}

function Result({ found, head }: Checked) {
  const { ok, entries, balance, sum, problem, verified_at: at } = found;
  const what = plural(entries, "{count} entry", "{count} entries");
  return (
    <>
      {ok
        ? <Notice tone="good">All correct: {what} checked, none changed or missing.</Notice>
        : (
          <Notice tone="bad">
            <span>
              Something is wrong{problem?.number ? ` at entry ${count(problem.number)}` : ""}: {problem?.what}
            </span>
          </Notice>
        )}
      <p>
        {sum === balance
          ? `The amounts add up to ${money(sum)}, which is the balance.`
          : `The amounts add up to ${money(sum)}, but the balance is ${money(balance)}.`}
      </p>
      {head !== null && <p class="ledger-head"><small>Hash of the newest entry</small><code>{head}</code></p>}
      <p><small>Verified {whenExactly(at)}</small></p>
    </>
  );
}
