// What an assistant can be made of: languages, models, voices, and the account's own rows. Catalogs
// do not change while the page is open and are asked for once.
import { unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { SHARED, useData, type Data } from "#ui/dashboard/data/use-data.ts";
import { byName } from "#ui/dashboard/kit/by-name.ts";
import type { Option } from "#ui/dashboard/kit/controls.tsx";
import { languageName } from "#ui/dashboard/kit/languages.tsx";
import { said } from "#ui/dashboard/kit/said.ts";
import type { Values } from "./draft.ts";
import { t } from "#ui/dashboard/kit/texts.ts";

const loaded = new Map<string, Promise<unknown>>();

function once<T>(key: string, load: () => Promise<T>): Promise<T> {
  let loading = loaded.get(key) as Promise<T> | undefined;
  if (!loading) {
    loading = load();
    loaded.set(key, loading);
    loading.catch(() => loaded.delete(key));
  }
  return loading;
}

function useCatalog<T>(key: string, load: () => Promise<T>): Data<T> {
  return useData(key, () => once(key, load));
}

export function useLanguages() {
  const api = useApi();
  return useCatalog("languages", async () =>
    (await unwrap(api.GET("/user/assistants/languages")))
      .map((one) => ({ ...one, name: languageName(one.iso_2) })));
}

type Mode = NonNullable<Values["mode"]>;
type ModelType = "llm" | "multimodal" | "dualplex";

export function useModels(type: ModelType) {
  const api = useApi();
  return useCatalog(`models ${type}`, () =>
    unwrap(api.GET("/user/assistants/models", { params: { query: { type } } })));
}

/** Null as the language: voices of all. */
export function useVoices(mode: Mode, language: number | null) {
  const api = useApi();
  const query = { mode, ...(language === null ? {} : { language_id: language }) };
  return useCatalog(`voices ${mode} ${language}`, () =>
    unwrap(api.GET("/user/assistants/voices", { params: { query } })));
}

export function useSynthesizers(language: number) {
  const api = useApi();
  return useCatalog(`synthesizers ${language}`, () => unwrap(api.GET(
    "/user/assistants/synthesizer-providers", { params: { query: { language_id: language } } })));
}

export function useTranscribers(language: number) {
  const api = useApi();
  return useCatalog(`transcribers ${language}`, () => unwrap(api.GET(
    "/user/assistants/transcriber-providers", { params: { query: { language_id: language } } })));
}

export function useNumbers() {
  const api = useApi();
  return useData("assistants numbers", () =>
    unwrap(api.GET("/user/assistants/phone-numbers", {})),
  ["phone_number_purchased", "phone_number_released", "phone_number_suspended"], SHARED);
}

/** As many as the server has in one page. */
const PER_PAGE = 100;

/** Loads a whole paged list, sorted by name. */
async function whole<T extends { name: string }>(
  load: (query: { page: number; per_page: number }) => Promise<{ data: T[]; last_page: number }>,
): Promise<T[]> {
  const rows: T[] = [];
  for (let page = 1, last = 1; page <= last; page += 1) {
    const { data, last_page } = await load({ page, per_page: PER_PAGE });
    rows.push(...data);
    last = last_page;
  }
  return byName(rows);
}

export function useFolders() {
  const api = useApi();
  return useData("folders", () => whole((query) =>
    unwrap(api.GET("/user/folders", { params: { query } }))), [], SHARED);
}

export function useLabels() {
  const api = useApi();
  return useData("labels", () => whole((query) =>
    unwrap(api.GET("/user/labels", { params: { query } }))), [], SHARED);
}

interface Named {
  id: number;
  name: string;
  /** False: this server cannot use it because something is `missing`. */
  available?: boolean;
  missing?: string | null;
  isGrey?: boolean;
}

export const isAvailable = ({ available }: Named): boolean =>
  available !== false;

/** In brackets what the server lacks to use it. */
export const lackOf = (item: Named): string => isAvailable(item)
  ? ""
  : ` (${item.missing ? said(item.missing) : t("not set up on this server")})`;

/** For a select; a language that calls cannot use can still be chosen for chats. */
export function languageRows(
  languages: ReturnType<typeof useLanguages>["value"], mode: Mode,
): { id: number; name: string; isGrey: boolean }[] | null {
  return languages && languages.map(({ id, name, missing }) => {
    // Realtime models know languages of their own.
    const isGrey = mode === "pipeline" && missing !== null;
    return { id, name: isGrey ? `${name} (${t("chats only")}: ${said(missing)})` : name, isGrey };
  });
}

/** For selects; what is chosen already is offered even when the catalog does not have it. */
export function optionsOf(items: Named[] | null, chosen: number | null, none?: string): Option[] {
  const options = (items ?? []).map((item) => ({
    value: String(item.id), label: `${item.name}${lackOf(item)}`,
    isDisabled: !isAvailable(item) && item.id !== chosen, isGrey: item.isGrey ?? false,
  }));
  const isKnown = chosen === null || options.some(({ value }) => value === String(chosen));
  return [
    ...(none === undefined ? [] : [{ value: "", label: none }]),
    ...(isKnown ? [] : [{ value: String(chosen), label: items ? `No. ${chosen}` : "…" }]),
    ...options,
  ];
}

export const idOf = (text: string): number | null => (text === "" ? null : Number(text));
