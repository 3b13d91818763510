// An assistant being edited: its values on the server, the unsaved changes, and the server's errors
// for each field. Only changes are sent.
import { createContext } from "preact";
import { useContext, useRef, useState } from "preact/hooks";
import type { paths } from "#client/client.ts";
import { changedIn, meanwhile, same, takenFault } from "#ui/dashboard/data/meanwhile.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { said } from "#ui/dashboard/kit/said.ts";
import { reworded } from "./labels.ts";

type OneAssistant = paths["/user/assistant/{id}"];
/** Fields that are always null are left out. */
export type Assistant = Omit<
  OneAssistant["get"]["responses"][200]["content"]["application/json"],
  "engine_id" | "synthesizer_id" | "transcriber_id" | "language" | "flows_platform_id"
> & { warnings?: { field: string; message: string }[] };
type Changes = NonNullable<OneAssistant["patch"]["requestBody"]>["content"]["application/json"];
export type Field = keyof Changes;

/** A built-in function: flat, as it is sent. */
export interface BuiltIn {
  type: string;
  [member: string]: unknown;
}

/** All settings as they are sent; null where nothing is set. */
export type Values = { [F in Exclude<Field, "tools">]-?: NonNullable<Changes[F]> | null }
  & { tools: BuiltIn[] };

/** Records spell some settings differently from changes. */
function valuesOf(record: Assistant): Values {
  return {
    ...record as unknown as Values,
    fillers: record.fillers === 1,
    end_call_on_voicemail: record.end_call_on_voicemail === 1,
    llm_temperature: Number(record.llm_temperature),
    voice_stability: Number(record.voice_stability),
    voice_similarity: Number(record.voice_similarity),
    speech_speed: Number(record.speech_speed),
    ambient_sound_volume: Number(record.ambient_sound_volume),
    tools: record.tools.map(({ type, data }) => ({ ...data, type })),
  };
}

export interface Draft {
  record: Assistant;
  values: Values;
  set<F extends Field>(name: F, value: Values[F]): void;
  changed: Field[];
  /** The changes as they would be sent; null: there are none. */
  unsaved: Partial<Values> | null;
  /** Keyed by the server's names: `name`, `tools.0.phone_number`; worded with the labels. */
  errors: Record<string, string>;
  /** Why a stored setting has no effect on this server, by the server's names. */
  warnings: Record<string, string>;
  /** Counts failed tries to save. */
  failures: number;
  /** The last failure to save; null: none. */
  failure: unknown;
  isSaving: boolean;
  save(): void;
  discard(): void;
}

const DraftContext = createContext<Draft | null>(null);
export const DraftProvider = DraftContext.Provider;

export function useDraft(): Draft {
  const draft = useContext(DraftContext);
  if (!draft) throw new Error("nothing is being edited");
  return draft;
}

const within = (errors: Record<string, string>, name: string): string[] =>
  Object.keys(errors).filter((field) => field === name || field.startsWith(`${name}.`));

interface Kept {
  /** Gets the record as the server has it. */
  onRead(record: Assistant): void;
  onSaved(): void;
}

/** `record`: the newest that was read. */
export function useNewDraft(record: Assistant, { onRead, onSaved }: Kept): Draft {
  const api = useApi();
  const [edits, setEdits] = useState<Partial<Values>>({});
  const [saving, setSaving] = useState({
    isSaving: false, failures: 0, failure: null as unknown, errors: {} as Record<string, string>,
  });
  // Edits stay based on the record they began with, whatever is read in the meantime.
  const from = useRef(record);
  if (Object.keys(edits).length === 0) from.current = record;
  const base = valuesOf(from.current);
  const values: Values = { ...base, ...edits };
  const changed = changedIn(values, base);
  const unsaved = Object.fromEntries(changed.map((name) => [name, edits[name]])) as Partial<Values>;
  const take = (read: Assistant): void => {
    from.current = read;
    onRead(read);
  };
  const send = async (): Promise<void> => {
    const sent = unsaved;
    const params = { path: { id: record.id } };
    const read = (): Promise<Assistant> => unwrap(api.GET("/user/assistant/{id}", { params }));
    const fresh = await read();
    const { taken } = meanwhile(values, base, valuesOf(fresh));
    if (taken.length > 0) {
      take(fresh);
      throw takenFault(taken);
    }
    await unwrap(api.PATCH("/user/assistant/{id}", { params, body: sent as Changes }));
    take(await read());
    onSaved();
    // What was typed meanwhile stays unsaved.
    setEdits((now) => Object.fromEntries(Object.entries(now).filter(([name, value]) =>
      !Object.hasOwn(sent, name) || !same(value, sent[name as Field]))));
  };
  return {
    record, values, changed, ...saving, unsaved: changed.length > 0 ? unsaved : null,
    warnings: Object.fromEntries((record.warnings ?? [])
      .filter(({ field }) => !changed.includes(field.split(".")[0] as Field))
      .map(({ field, message }) => [field, said(message)])),
    set: (name, value) => {
      setEdits((before) => ({ ...before, [name]: value }));
      setSaving((before) => {
        const gone = within(before.errors, name);
        if (gone.length === 0) return before;
        const kept = Object.entries(before.errors).filter(([field]) => !gone.includes(field));
        return { ...before, failure: null, errors: Object.fromEntries(kept) };
      });
    },
    save: () => {
      if (saving.isSaving || changed.length === 0) return;
      setSaving((before) => ({ ...before, isSaving: true }));
      send().then(
        () => setSaving((before) => ({ ...before, isSaving: false, failure: null, errors: {} })),
        (failure: unknown) => setSaving((before) => ({
          isSaving: false, failure, errors: fieldErrors(failure, reworded),
          failures: before.failures + 1,
        })));
    },
    discard: () => {
      setEdits({});
      setSaving((before) => ({ ...before, failure: null, errors: {} }));
    },
  };
}
