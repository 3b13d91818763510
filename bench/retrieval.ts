// Whether a search finds the passage that answers a question: recall@1 and @3 and the mean
// reciprocal rank over the corpus of test/support/documents/corpus.ts, through the whole path
// (extractor process, chunks, full-text index), and how long a search takes.
import { measureRetrieval } from "#support/documents/retrieval.ts";
import { print, printResult } from "./report.ts";

const { rows, recallAt1, recallAt3, reciprocalRank, searchUs } = await measureRetrieval();
for (const { question, rank, document } of rows) {
  print(`${rank === null ? "  - " : String(rank).padStart(3)}  ${question.padEnd(56)} ${document}`);
}
printResult("retrieval", {
  questions: rows.length, recall_at_1: recallAt1, recall_at_3: recallAt3,
  mean_reciprocal_rank: reciprocalRank, search_us: searchUs,
});
