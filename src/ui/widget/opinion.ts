// Asks how the chat was when it is over: a score of one to five, and an optional comment.
import { make, sends } from "./elements.ts";
import type { Actions } from "./view.ts";
import type { Say } from "./texts.ts";

const SCORES = ["1", "2", "3", "4", "5"];
const COMMENT_CHARS_MAX = "1000";

export function createOpinion({ score: give, skip }: Pick<Actions, "score" | "skip">, say: Say) {
  const title = make("legend");
  const choices = SCORES.map((score) => ({
    input: make("input", { type: "radio", name: "score", value: score, required: "" }),
    score,
  }));
  const comment = make("textarea", { rows: "2", maxlength: COMMENT_CHARS_MAX, dir: "auto" });
  const send = make("button", { class: "main" });
  const no = make("button", { type: "button" });
  const element = make("form", { class: "opinion", hidden: "" },
    make("fieldset", {}, title, make("div", { class: "scores" },
      ...choices.map(({ input, score }) => make("label", {}, input, make("span", {}, score))))),
    comment, make("div", { class: "row" }, send, no));
  sends(element, () => {
    const chosen = choices.find(({ input }) => input.checked);
    if (!chosen) return;
    give(Number(chosen.score), comment.value.trim());
    element.reset();
  });
  no.addEventListener("click", skip);
  return {
    element,
    label: (): void => {
      title.textContent = say("csat_title");
      comment.placeholder = comment.ariaLabel = say("csat_comment");
      send.textContent = say("send");
      no.textContent = say("skip");
      for (const { input, score } of choices) input.ariaLabel = say("csat_score", { score });
    },
  };
}
