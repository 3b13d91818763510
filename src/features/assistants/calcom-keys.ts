// The Cal.com key in an assistant's calendar_integration: sealed wherever settings are stored,
// never shown, opened only to call Cal.com. Used by assistants.ts when settings are written, and
// when the server starts, for rows from a time when keys were stored in plain text.
import { MASK, type SecretBox } from "#core/secrets.ts";
import type { Assistant } from "./assistants.ts";
import type { BuiltInTool } from "./built-in-tools.ts";

export type CalendarIntegration = Extract<BuiltInTool, { type: "calendar_integration" }>;
export type Place = Pick<Assistant, "accountId" | "uuid">;

const SEALED = /^v1(\.[\w-]+){3}$/;
export const isSealedKey = (key: string): boolean => SEALED.test(key);

/** What an assistant's key is bound to. */
export const calcomPlace = ({ accountId, uuid }: Place): string =>
  `assistants:${accountId}:${uuid}:calcom_api_key`;
export const isIntegration = (tool: BuiltInTool): tool is CalendarIntegration =>
  tool.type === "calendar_integration";

export const maskedKey = (tool: BuiltInTool): BuiltInTool =>
  isIntegration(tool) ? { ...tool, calcom_api_key: MASK } : tool;

export function createCalcomKeys(box: SecretBox) {
  const seal = (place: Place, tool: CalendarIntegration): CalendarIntegration =>
    ({ ...tool, calcom_api_key: box.seal(tool.calcom_api_key, calcomPlace(place)) });
  return {
    /** Null when it was sealed under another secret. */
    open: (place: Place, tool: CalendarIntegration): string | null =>
      box.tryOpen(tool.calcom_api_key, calcomPlace(place)),
    /**
     * The tools as stored. A mask stands for the key of the same event in `before`, or else for the
     * only key there; `missing` is called for a mask that stands for no key.
     */
    sealed: (
      place: Place, sent: BuiltInTool[], before: BuiltInTool[], missing: (index: number) => void,
    ): BuiltInTool[] => {
      const kept = before.filter(isIntegration);
      return sent.map((tool, index) => {
        if (!isIntegration(tool)) return tool;
        if (tool.calcom_api_key !== MASK) return seal(place, tool);
        const same = kept.find((other) => other.calcom_event_slug === tool.calcom_event_slug)
          ?? (kept.length === 1 ? kept[0] : undefined);
        if (!same) missing(index);
        return { ...tool, calcom_api_key: same?.calcom_api_key ?? MASK };
      });
    },
    /** Seals plain-text keys; null when there are none. */
    closed: (place: Place, tools: BuiltInTool[]): BuiltInTool[] | null => {
      const isOpen = (tool: BuiltInTool): tool is CalendarIntegration =>
        isIntegration(tool) && !isSealedKey(tool.calcom_api_key);
      if (!tools.some(isOpen)) return null;
      return tools.map((tool) => (isOpen(tool) ? seal(place, tool) : tool));
    },
  };
}
