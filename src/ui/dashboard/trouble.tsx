// A banner on every page: a visitor got no answer, why, and what to do about it. It stays until
// somebody has dealt with it, or for a day; a day's limit only until that day is over.
import { useState } from "preact/hooks";
import { useMe } from "./data/lists.ts";
import { Button } from "./kit/controls.tsx";
import { when } from "./kit/format.ts";
import { onDevice } from "./kit/kept.ts";
import { Notice } from "./kit/layout.tsx";
import { LowBalance } from "./low-balance.tsx";

const SEEN = "parley-trouble-seen";
const DAY_MS = 86_400_000;

const WORDS: Record<string, { text: string; link: string; href?: string }> = {
  balance_too_low: {
    text: "Visitors are not answered: the balance is used up. Add credit to the account.",
    link: "Money", href: "#/money",
  },
  daily_cap_reached: {
    text: "Visitors are not answered: an assistant has reached its daily spending limit. Raise the "
      + "limit at the assistant, or wait for the next day (UTC).",
    link: "Assistants", href: "#/assistants",
  },
  reply_failed: {
    text: "A visitor was not answered because the reply failed. The conversation says why.",
    link: "Conversation",
  },
};

const dayOf = (at: string | number): string => new Date(at).toISOString().slice(0, 10);

export function Trouble() {
  const { value } = useMe();
  const [seen, setSeen] = useState(() => onDevice.getItem(SEEN));
  const trouble = value?.trouble;
  const words = trouble && WORDS[trouble.reason];
  if (!words || trouble.at === seen || Date.now() - Date.parse(trouble.at) > DAY_MS) {
    return <LowBalance />;
  }
  const isOfBalance = trouble.reason === "balance_too_low";
  if (isOfBalance && value.total_balance >= 0.01) return <LowBalance />;
  const isOfDay = trouble.reason === "daily_cap_reached";
  if (isOfDay && dayOf(trouble.at) !== dayOf(Date.now())) return <LowBalance />;
  const notice = (
    <Notice tone="bad">
      <span>
        {words.text} <a href={words.href ?? `#/conversations/${trouble.conversation_id ?? ""}`}>{words.link}</a>{" "}
        <small>{when(trouble.at)}</small>
      </span>
      <Button
        kind="quiet" label="Seen"
        onClick={() => {
          onDevice.setItem(SEEN, trouble.at);
          setSeen(trouble.at);
        }}
      >
        Seen
      </Button>
    </Notice>
  );
  return isOfBalance ? notice : <>{notice}<LowBalance /></>;
}
