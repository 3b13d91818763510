// The balance: how much is available, how long it lasts, how to add money, and who is notified when
// it runs low.
import { useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { meanwhile, takenFault } from "#ui/dashboard/data/meanwhile.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button, Form, sends, TextField, useWork } from "#ui/dashboard/kit/controls.tsx";
import { useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { money, when, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Failure, Figure, Loaded } from "#ui/dashboard/kit/layout.tsx";

type Found = paths["/user/balance"]["get"]["responses"][200]["content"]["application/json"];

export function Balance() {
  const api = useApi();
  const data = useData(
    "balance", () => unwrap(api.GET("/user/balance")), ["balance_changed"]);
  return (
    <Loaded data={data}>
      {(found) => (
        <div class="grid two">
          <Card title="Balance" actions={<a href="#/ledger">Ledger</a>}>
            <div class="stack"><Figures found={found} /><TopUp found={found} /></div>
          </Card>
          <Card title="When it runs low"><Alerts found={found} saved={data.reload} /></Card>
        </div>
      )}
    </Loaded>
  );
}

function Figures({ found }: { found: Found }) {
  const { balance, reserved, per_day: perDay, lasts_until: until } = found;
  return (
    <dl class="figures-row">
      <Figure label="Balance" value={money(balance)} />
      <Figure
        label="Free to use" value={money(balance - reserved)} note={`${money(reserved)} reserved`}
      />
      <Figure
        label="Lasts until"
        value={until === null ? "–" : <time title={whenExactly(until)}>{when(until)}</time>}
        note={until === null
          ? "Nothing is being spent right now"
          : `at ${money(perDay)} a day, as in the last 7 days`}
      />
    </dl>
  );
}

function TopUp({ found: { top_up: way } }: { found: Found }) {
  const api = useApi();
  const [amount, setAmount] = useState("25");
  const [error, setError] = useState<unknown>(null);
  const { isBusy, run } = useWork(setError);
  if (way === "none") return <p class="soft">To add money, ask your operator.</p>;
  const pay = (): void => run(async () => {
    setError(null);
    const body = way === "checkout" ? { amount: Number(amount) } : {};
    const { url } = await unwrap(api.POST("/user/top-ups", { body }));
    location.assign(url);
  });
  return (
    <div class="stack">
      {Boolean(error) && <Failure error={error} />}
      <form class="filters" onSubmit={sends(pay)}>
        {way === "checkout" && (
          <TextField label="Amount (USD)" value={amount} onInput={setAmount} />
        )}
        <Button kind="main" needs="money" type="submit" isBusy={isBusy}>Add money</Button>
      </form>
    </div>
  );
}

const listed = (text: string): string[] => text.split(/[\s,;]+/).filter(Boolean);

interface Texts { amounts: string; emails: string }
const textsOf = ({ amounts, emails }: Found["alerts"]): Texts =>
  ({ amounts: amounts.join(", "), emails: emails.join(", ") });

function Alerts({ found: { alerts, sends_mail: sendsMail }, saved }: {
  found: Found; saved(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  // Fields that nobody has edited follow the server.
  const [written, setWritten] = useState<Partial<Texts>>({});
  /** The stored values when editing began. */
  const [before, setBefore] = useState<Texts | null>(null);
  const { amounts, emails } = { ...textsOf(alerts), ...written };
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const write = (part: Partial<Texts>): void => {
    setBefore(before ?? textsOf(alerts));
    setWritten({ ...written, ...part });
  };
  /** What to save on top of the server's current state; throws where both changed a field. */
  const merge = async (): Promise<Texts> => {
    const theirs = textsOf((await unwrap(api.GET("/user/balance"))).alerts);
    const base = before ?? theirs;
    const { merged, taken } = meanwhile({ ...base, ...written }, base, theirs);
    setBefore(theirs);
    if (taken.length > 0) throw takenFault(taken);
    return merged;
  };
  const save = async (): Promise<void> => {
    setError(null);
    const { amounts, emails } = await merge();
    await unwrap(api.PUT("/user/balance/alerts", {
      body: { amounts: listed(amounts).map(Number), emails: listed(emails) },
    }));
    toasts.notify("Saved.");
    setWritten((now) => (now === written ? {} : now));
    setBefore(null);
    saved();
  };
  return (
    <Form onSubmit={save} error={error} onError={setError} submit="Save">
      <TextField
        label="Amounts (USD)" value={amounts} placeholder="20, 5"
        onInput={(text) => write({ amounts: text })} error={errors.amounts}
        hint={"When the balance falls to one of them, webhooks receive balance_low; once, until it "
          + "was above it again."}
      />
      <TextField
        label="E-mails" value={emails} placeholder="ada@example.org"
        onInput={(text) => write({ emails: text })} error={errors.emails}
        hint={sendsMail
          ? "Each of them also gets an e-mail about it."
          : "The server is not set up to send mail: ask your operator."}
      />
    </Form>
  );
}
