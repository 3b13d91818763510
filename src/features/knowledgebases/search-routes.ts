// The wire of trying a knowledgebase's search: what an assistant would find for a question, with
// scores.
import { Type, type Static } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { about, named, NonBlank, Nullable } from "#core/schema.ts";
import { dataOf, IdOf, listOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { knowledgebaseNotFound, type FoundPassage } from "./knowledgebases.ts";
import type { Retrieval } from "./retrieval.ts";

const SearchBody = Type.Object({
  query: NonBlank(LIMITS.messageCharsMax, about("The question, as a person would ask it.",
    "What does a city bike cost?")),
});

const rankOf = (description: string, score: string, example: number) => Nullable(Type.Object({
  place: Type.Integer(about("Rank, from 1.", 1)),
  score: Type.Number(about(score, example)),
}, about(description)));

const FoundSchema = Type.Object({
  document_id: Type.Integer(about("The document it is from.", 1)),
  document: Type.String(about("The document's name.", "Prices 2026")),
  chunk: Type.Integer(about("The chunk: its `chunk` in the document's chunks.", 3)),
  headings: Type.Array(Type.String(), about("The headings above it, outermost first.", ["Bikes"])),
  page: Nullable(Type.Integer(about("The page it is on; null if the format has no pages.", 2))),
  url: Nullable(Type.String(about("The web page it is from; null for a file.",
    "https://example.com/"))),
  text: Type.String(about("What it says.", "A city bike costs 20 dollars a day.")),
  score: Type.Number(about(
    "The combined score of all rankings, from 0 to 1; 1 is the top of each.", 0.98)),
  words: rankOf("The ranking by the question's words; null if it contains none of them.",
    "BM25 score: higher is better, comparable within one response.", 4.2),
  meaning: rankOf("The ranking by meaning; null if not compared or not similar enough.",
    "Cosine similarity; 1 is identical.", 0.81),
  is_given: Type.Boolean(about(
    "Whether an assistant would be given this passage; it gets only the first few.")),
}, named("FoundPassage", "A passage found by a search."));

const SearchSchema = Type.Object({
  results: listOf(FoundSchema, "The passages, best first; empty if nothing was found."),
  by_meaning: Type.Boolean(about(
    "Whether meaning was compared too; false if the server has no embeddings or they did not "
    + "respond.")),
}, named("SearchTrial", "The search results for a question."));

const rounded = (value: number): number => Number(value.toFixed(4));

const wireFound = (
  { documentId, words, meaning, score, ...passage }: FoundPassage, index: number,
): Static<typeof FoundSchema> => ({
  document_id: documentId,
  ...passage,
  score: rounded(score),
  words: words && { ...words, score: rounded(words.score) },
  meaning: meaning && { ...meaning, score: rounded(meaning.score) },
  is_given: index < LIMITS.passagesPerSearchMax,
});

export function searchRoutes({ retrieval }: { retrieval: Pick<Retrieval, "trySearch"> }): Route[] {
  return [
    keyRoute({
      tag: "Knowledgebases",
      errorShape: "error",
      notFound: "Knowledgebase not found.",
      method: "POST",
      path: "/user/knowledgebases/{id}/search",
      params: { id: IdOf("knowledgebase", "GET /user/knowledgebases") },
      summary: "Search a knowledgebase",
      description: "Runs the search an assistant would run, with more results and their scores. "
        + "Free, changes nothing, and counts as a read.",
      scope: "read",
      body: SearchBody,
      responses: { 200: { description: "The result", schema: dataOf(SearchSchema) } },
      handle: async ({ caller, id, body: { query } }) => {
        const tried = await retrieval.trySearch(caller.accountId, id, query);
        if (!tried) throw knowledgebaseNotFound();
        return json(200, {
          data: { results: tried.found.map(wireFound), by_meaning: tried.isByMeaning },
        });
      },
    }),
  ];
}
