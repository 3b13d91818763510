// The first question for a new lead and for an import: which campaign they are for.
import type { ComponentChildren } from "preact";
import { useCampaigns, type Campaign } from "#ui/dashboard/data/lists.ts";
import { namedOptions } from "#ui/dashboard/kit/by-name.ts";
import { SelectField } from "#ui/dashboard/kit/controls.tsx";
import { Loaded } from "#ui/dashboard/kit/layout.tsx";

export function WithCampaigns({ children }: {
  children: (campaigns: Campaign[]) => ComponentChildren;
}) {
  const campaigns = useCampaigns();
  return (
    <Loaded data={campaigns}>
      {(all) => all.length > 0
        ? children(all)
        : <p>There is no campaign yet. <a href="#/campaigns/new">Create one</a> first.</p>}
    </Loaded>
  );
}

export function CampaignField({ campaigns, value, onInput, error }: {
  campaigns: Campaign[]; value: string; onInput(value: string): void; error?: string | undefined;
}) {
  return (
    <SelectField
      label="Campaign" value={value} onInput={onInput} error={error}
      options={namedOptions(campaigns)}
    />
  );
}
