// The form of a new or existing endpoint: its URL, and which events it receives.
import { useId, useState } from "preact/hooks";
import { useEdited } from "#ui/dashboard/data/meanwhile.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Form, TextField, Toggle } from "#ui/dashboard/kit/controls.tsx";
import { Dialog } from "#ui/dashboard/kit/dialog.tsx";
import { EVENT_GROUPS, EVENT_TYPES } from "./event-types.ts";
import type { Endpoint } from "./webhooks-data.ts";

type Fields = Pick<Endpoint, "url" | "events">;
const NEW: Fields = { url: "", events: ["*"] };
const fieldsOf = ({ url, events }: Endpoint): Fields => ({ url, events });
const bodyOf = ({ url, events }: Fields): Fields => ({ url: url.trim(), events });

export function EndpointDialog({ endpoint, onClose, onSaved }: {
  /** The endpoint to change; absent: a new one. */
  endpoint?: Endpoint; onClose(): void; onSaved(endpoint: Endpoint): void;
}) {
  const api = useApi();
  const edited = useEdited(endpoint ? fieldsOf(endpoint) : NEW);
  const { url, events } = edited.fields;
  const [error, setError] = useState<unknown>(null);
  const errors = fieldErrors(error);
  const change = async (id: number) => {
    const params = { path: { id } };
    const { data } = await unwrap(api.GET("/user/webhook-endpoints/{id}", { params }));
    const body = bodyOf(edited.onto(fieldsOf(data)));
    return unwrap(api.PUT("/user/webhook-endpoints/{id}", { params, body }));
  };
  const save = async (): Promise<void> => {
    const { data } = endpoint
      ? await change(endpoint.id)
      : await unwrap(api.POST("/user/webhook-endpoints", { body: bodyOf(edited.fields) }));
    onSaved(data);
  };
  return (
    <Dialog title={endpoint ? "Edit endpoint" : "New endpoint"} isWide onClose={onClose}>
      <Form
        submit={endpoint ? "Save" : "Create"} error={error} onError={setError}
        onSubmit={save} onCancel={onClose}
      >
        <TextField
          label="URL" type="url" value={url} required error={errors.url}
          onInput={(text) => edited.set({ url: text })}
          placeholder="https://example.com/parley" autoComplete="off"
          hint="Receives a POST with JSON for each event, in order, until it answers 2xx."
        />
        <Events
          chosen={events} error={errors.events}
          onChoose={(chosen) => edited.set({ events: chosen })}
        />
      </Form>
    </Dialog>
  );
}

/** `*` stands for all events, including types of later versions. */
function Events({ chosen, onChoose, error }: {
  chosen: string[]; onChoose(events: string[]): void; error: string | undefined;
}) {
  const isAll = chosen.includes("*");
  // Types that were set through the API and are not listed here are kept.
  const others = chosen.filter((type) => type !== "*" && !EVENT_TYPES.includes(type));
  const toggle = (type: string, isOn: boolean): void =>
    onChoose(isOn ? [...chosen, type] : chosen.filter((one) => one !== type));
  return (
    <>
      <Toggle
        label="All events" value={isAll} error={error}
        hint="Event types added in later versions are delivered too."
        onInput={(isOn) => onChoose(isOn ? ["*"] : [])}
      />
      {!isAll && (
        <div class="webhooks-events">
          {[...EVENT_GROUPS, ...(others.length > 0
            ? [["Others", others.map((type) => ({ type, text: type }))] as const] : [])].map(([group, choices]) => (
            <fieldset key={group}>
              <legend>{group}</legend>
              {choices.map(({ type, text }) => (
                <Choice
                  key={type} text={text} type={type} isOn={chosen.includes(type)}
                  onToggle={(isOn) => toggle(type, isOn)}
                />
              ))}
            </fieldset>
          ))}
        </div>
      )}
    </>
  );
}

function Choice({ text, type, isOn, onToggle }: {
  text: string; type: string; isOn: boolean; onToggle(isOn: boolean): void;
}) {
  const id = useId();
  return (
    <div class="webhooks-choice">
      <input
        id={id} type="checkbox" checked={isOn}
        onChange={(event) => onToggle(event.currentTarget.checked)}
      />
      <label for={id}>{text}<small class="mono">{type}</small></label>
    </div>
  );
}
