// The wire of trying a knowledgebase's search: what an assistant would find for a question, with
// scores.
import { Type, type Static } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { about, named, Nullable } from "#core/schema.ts";
import { dataOf, IdOf, listOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { knowledgebaseNotFound, type FoundPassage } from "./knowledgebases.ts";
import type { Retrieval } from "./retrieval.ts";

const SearchBody = Type.Object({
  query: Type.String({
    pattern: "\\S", maxLength: LIMITS.messageCharsMax,
    ...about("A question, as a person would ask it.", "What does a city bike cost?"),
  }),
});

const rankOf = (description: string, score: string, example: number) => Nullable(Type.Object({
  place: Type.Integer(about("Its place in this ranking, from 1.", 1)),
  score: Type.Number(about(score, example)),
}, about(description)));

const FoundSchema = Type.Object({
  document_id: Type.Integer(about("The document it is of.", 1)),
  document: Type.String(about("What the document is called.", "Prices 2026")),
  chunk: Type.Integer(about("Which piece of the document: its `chunk`, as the document's chunks list it.", 3)),
  headings: Type.Array(Type.String(), about("The headings above it, outermost first.", ["Bikes"])),
  page: Nullable(Type.Integer(about("The page it is on; null: the format has none.", 2))),
  url: Nullable(Type.String(about("The web page it is of; null: a file.", "https://example.com/"))),
  text: Type.String(about("What it says.", "A city bike costs 20 dollars a day.")),
  score: Type.Number(about(
    "From 0 to 1, of all rankings together; 1: the first of each.", 0.98)),
  words: rankOf("By the words of the question; null: it has none of them.",
    "BM25: higher is better, comparable within one answer.", 4.2),
  meaning: rankOf("By what is meant; null: not compared, or too far away.",
    "The cosine of both vectors: 1 is the same.", 0.81),
  is_given: Type.Boolean(about(
    "Whether an assistant that asks this is given the passage: it gets the first few alone.")),
}, named("FoundPassage", "A passage as a search found it."));

const SearchSchema = Type.Object({
  results: listOf(FoundSchema, "The best first; none: nothing was found."),
  by_meaning: Type.Boolean(about(
    "Whether meaning counted too; false: the server has no embeddings, or they did not answer.")),
}, named("SearchTrial", "What a knowledgebase has for a question."));

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
      summary: "Try what a question finds",
      description: "The search an assistant would make, with more results and their scores. It "
        + "costs nothing, changes nothing, and counts as a read.",
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
