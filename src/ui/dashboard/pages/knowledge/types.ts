// The API's types of knowledgebases and documents.
import type { paths } from "#client/client.ts";

type Data<P extends "/user/knowledgebases" | "/user/knowledgebases/{id}/documents"> =
  paths[P]["get"]["responses"][200]["content"]["application/json"]["data"][number];

export type Knowledgebase = Data<"/user/knowledgebases">;
export type Document = Data<"/user/knowledgebases/{id}/documents">;

export const CHANGES = ["document_status_changed"];

export type Found = paths["/user/knowledgebases/{id}/search"]["post"]["responses"][200]["content"][
  "application/json"]["data"]["results"][number];

export type Chunk = paths["/user/knowledgebases/{id}/documents/{document_id}/chunks"]["get"][
  "responses"][200]["content"]["application/json"]["data"][number];

export interface QuestionAndAnswer {
  question: string;
  answer: string;
}

/** Written by hand, and changed by hand. */
export const isWritten = ({ type }: Document): boolean => type === "text" || type === "faq";
