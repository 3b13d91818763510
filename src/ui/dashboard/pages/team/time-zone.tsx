// Where the account's days begin and end, and which clock its times are shown by.
import { useState } from "preact/hooks";
import { useMe } from "#ui/dashboard/data/lists.ts";
import { useMay } from "#ui/dashboard/data/rights.tsx";
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { SelectField } from "#ui/dashboard/kit/controls.tsx";
import { useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { Card } from "#ui/dashboard/kit/layout.tsx";
import { zoneOptions } from "#ui/dashboard/kit/zone.ts";

const BROWSERS = { value: "", label: "Each browser’s own; UTC in reports" };

export function AccountTimeZone() {
  const api = useApi();
  const toasts = useToasts();
  const me = useMe();
  const isLocked = useMay()("build") !== null;
  const [isBusy, setBusy] = useState(false);
  if (!me.value) return null;
  const zone = me.value.time_zone ?? "";
  const save = async (chosen: string): Promise<void> => {
    setBusy(true);
    try {
      await unwrap(api.PUT("/user/settings", { body: { time_zone: chosen || null } }));
      toasts.notify("The time zone was changed.", () => void save(zone));
      me.reload();
    } catch (error) {
      toasts.fail(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card title="Time zone">
      <SelectField
        label="Account time zone" value={zone} disabled={isBusy || isLocked}
        onInput={(chosen) => void save(chosen)}
        hint="Lists, charts and reports use its days, and all times are shown in it, for everybody."
        options={[BROWSERS, ...zoneOptions(zone)]}
      />
    </Card>
  );
}
