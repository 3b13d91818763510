// The balance, and what is free of it.
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { money } from "#ui/dashboard/kit/format.ts";
import { Card, Figure, Loaded } from "#ui/dashboard/kit/layout.tsx";

export function Balance() {
  const api = useApi();
  const data = useData("ledger balance", () => unwrap(api.GET("/user/overview", {
    params: { query: { days: 1 } },
  })), ["balance_changed"]);
  return (
    <Card title="Balance" actions={<a href="#/ledger">Ledger</a>}>
      <Loaded data={data}>
        {({ balance, reserved }) => (
          <dl class="figures-row">
            <Figure label="Balance" value={money(balance)} />
            <Figure label="Reserved" value={money(reserved)} note="for what is going on now" />
            <Figure label="Free to use" value={money(balance - reserved)} />
          </dl>
        )}
      </Loaded>
    </Card>
  );
}
