// Section: what the assistant can look up.
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { SHARED, useData } from "#ui/dashboard/data/use-data.ts";
import { byName } from "#ui/dashboard/kit/by-name.ts";
import { useDraft } from "#ui/dashboard/pages/assistants/draft.ts";
import { Choice, Row } from "#ui/dashboard/pages/assistants/fields.tsx";
import type { SectionSpec } from "#ui/dashboard/pages/assistants/section.ts";

function useKnowledgebases() {
  const api = useApi();
  return useData("assistants knowledgebases", async () =>
    byName((await unwrap(api.GET("/user/knowledgebases"))).data), [], SHARED);
}

function Summary() {
  const { knowledgebase_id } = useDraft().values;
  return <>{knowledgebase_id === null ? "None" : "A knowledgebase"}</>;
}

function Body() {
  const { values } = useDraft();
  const { knowledgebase_id: id, mode } = values;
  const bases = useKnowledgebases().value;
  return (
    <>
      <div class="form-row">
        <Row name="knowledgebase_id" none="None" items={bases} />
        {id !== null && (
          <Choice
            name="knowledgebase_mode"
            options={[
              { value: "", label: "The server’s choice" },
              { value: "function_call", label: "The model searches when it needs to" },
              ...(mode === "pipeline"
                ? [{ value: "prompt", label: "Searched at every turn" }]
                : []),
            ]}
          />
        )}
      </div>
      <p><a href={id === null ? "#/knowledgebases" : `#/knowledgebases/${id}`}>
        {id === null ? "Knowledgebases" : "Its documents"}
      </a></p>
    </>
  );
}

export const KNOWLEDGE: SectionSpec = {
  id: "knowledge", title: "Knowledgebase", Summary, Body,
  fields: ["knowledgebase_id", "knowledgebase_mode"],
};
