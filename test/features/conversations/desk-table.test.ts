// The table of who may have a conversation after whom, all of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { changeDesk, DESK_CHANGES, DESK_MOVES } from "#features/conversations/desk/desk.ts";

const ANA = { id: "key:1", name: "Ana" };
const BEN = { id: "key:2", name: "Ben" };
const HOLDERS = [null, ANA, BEN];

test("[DK1] the desk table has an outcome for each state and move; two people never hold one conversation", () => {
  const states = Object.keys(DESK_CHANGES) as (keyof typeof DESK_CHANGES)[];
  assert.deepEqual(states, ["assistant", "waiting", "person"]);
  const seen: string[] = [];
  for (const state of states) {
    for (const move of DESK_MOVES) {
      for (const held of state === "person" ? HOLDERS : [null]) {
        for (const wished of ["take", "assign", "lose"].includes(move) ? [ANA, BEN] : [null]) {
          const change = changeDesk({ state, holder: held }, move, wished);
          const to = change.kind === "changed"
            ? `${change.state}${change.holder ? ` ${change.holder.name}` : ""}` : change.kind;
          seen.push(`${state}${held ? ` ${held.name}` : ""} | ${move}${wished ? ` ${wished.name}` : ""} | ${to}`);
        }
      }
    }
  }
  assert.deepEqual(seen, [
    "assistant | ask | waiting",
    "assistant | take Ana | person Ana",
    "assistant | take Ben | person Ben",
    "assistant | assign Ana | person Ana",
    "assistant | assign Ben | person Ben",
    "assistant | hand_back | unchanged",
    "assistant | lose Ana | unchanged",
    "assistant | lose Ben | unchanged",
    "assistant | end | unchanged",
    "waiting | ask | unchanged",
    "waiting | take Ana | person Ana",
    "waiting | take Ben | person Ben",
    "waiting | assign Ana | person Ana",
    "waiting | assign Ben | person Ben",
    "waiting | hand_back | assistant",
    "waiting | lose Ana | unchanged",
    "waiting | lose Ben | unchanged",
    "waiting | end | assistant",
    "person | ask | unchanged",
    "person Ana | ask | unchanged",
    "person Ben | ask | unchanged",
    "person | take Ana | person Ana",
    "person | take Ben | person Ben",
    "person Ana | take Ana | unchanged",
    "person Ana | take Ben | held",
    "person Ben | take Ana | held",
    "person Ben | take Ben | unchanged",
    "person | assign Ana | person Ana",
    "person | assign Ben | person Ben",
    "person Ana | assign Ana | unchanged",
    "person Ana | assign Ben | person Ben",
    "person Ben | assign Ana | person Ana",
    "person Ben | assign Ben | unchanged",
    "person | hand_back | assistant",
    "person Ana | hand_back | assistant",
    "person Ben | hand_back | assistant",
    "person | lose Ana | unchanged",
    "person | lose Ben | unchanged",
    "person Ana | lose Ana | waiting",
    "person Ana | lose Ben | unchanged",
    "person Ben | lose Ana | unchanged",
    "person Ben | lose Ben | waiting",
    "person | end | assistant",
    "person Ana | end | assistant",
    "person Ben | end | assistant",
  ]);
});
