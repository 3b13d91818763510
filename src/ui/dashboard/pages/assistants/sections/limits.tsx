// Section: what the assistant may spend.
import { money } from "#ui/dashboard/kit/format.ts";
import { useDraft } from "#ui/dashboard/pages/assistants/draft.ts";
import { Amount } from "#ui/dashboard/pages/assistants/fields.tsx";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";

function Summary() {
  const { daily_spend_cap: cap } = useDraft().values;
  return <>{cap === null ? "The server’s own cap" : `${money(cap)} a day`}</>;
}

const Body = () => (
  <div class="form-row">
    <Amount name="daily_spend_cap" min={0} step={0.01} />
  </div>
);

export const LIMITS: SectionSpec = {
  id: "limits", title: "Spend limit", Summary, Body, fields: ["daily_spend_cap"],
};
