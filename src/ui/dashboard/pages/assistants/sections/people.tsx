// Section: when a person is asked to take the conversation over in the inbox.
import { NumberField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { useDraft, type Values } from "#ui/dashboard/pages/assistants/draft.ts";
import { about } from "#ui/dashboard/pages/assistants/labels.ts";
import { Lines } from "#ui/dashboard/pages/assistants/lines.tsx";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";
import { OfficeHours } from "./office-hours.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";

type Desk = NonNullable<Values["desk"]>;

const FAILURES_MAX = 10;

function Summary() {
  const desk = useDraft().values.desk ?? {};
  const who = [
    ...desk.visitor_may_ask ? [t("visitors")] : [], ...desk.assistant_may_ask ? [t("the assistant")] : [],
    ...desk.words?.length ? [t("words")] : [],
    ...desk.after_tool_failures || desk.after_unanswered ? [t("failures")] : [],
  ];
  return <>{who.length > 0 ? `Requested by ${who.join(", ")}` : "Nobody is requested"}</>;
}

function Body() {
  const { values, errors, set } = useDraft();
  const desk = values.desk ?? {};
  const change = (changes: Partial<Desk>): void => set("desk", { ...desk, ...changes });
  return (
    <>
      <p class="soft">
        Requested conversations are in the <a href="#/inbox">inbox</a>. The assistant keeps
        answering until somebody takes over.
      </p>
      <Toggle
        {...about("desk.visitor_may_ask")} value={desk.visitor_may_ask ?? false}
        onInput={(value) => change({ visitor_may_ask: value })}
      />
      <Toggle
        {...about("desk.assistant_may_ask")} value={desk.assistant_may_ask ?? false}
        onInput={(value) => change({ assistant_may_ask: value })}
      />
      <div class="form-row">
        <NumberField
          {...about("desk.after_tool_failures")} min={1} max={FAILURES_MAX}
          value={desk.after_tool_failures ?? null} error={errors["desk.after_tool_failures"]}
          onInput={(value) => change({ after_tool_failures: value })}
        />
        <NumberField
          {...about("desk.after_unanswered")} min={1} max={FAILURES_MAX}
          value={desk.after_unanswered ?? null} error={errors["desk.after_unanswered"]}
          onInput={(value) => change({ after_unanswered: value })}
        />
      </div>
      <Lines
        {...about("desk.words")} errors={errors}
        value={desk.words ?? []} placeholder="complaint" onInput={(words) => change({ words })}
      />
      <Lines
        {...about("desk.notify_emails")} errors={errors}
        value={desk.notify_emails ?? []} placeholder="desk@example.com"
        onInput={(emails) => change({ notify_emails: emails })}
      />
      <OfficeHours
        value={desk.office_hours ?? null} errors={errors}
        onInput={(hours) => change({ office_hours: hours })}
      />
    </>
  );
}

export const PEOPLE: SectionSpec = { id: "people", title: "People", Summary, Body, fields: ["desk"] };
