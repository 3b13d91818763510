// Templates: a start for newcomers. One creates an assistant with the knowledge, the tool and the
// test call that belong to it, and removes them together. Records → store port → factory.
import type { Assistant, Assistants } from "#features/assistants/assistants.ts";
import type { Knowledgebases } from "#features/knowledgebases/knowledgebases.ts";
import type { Tools } from "#features/tools/tools.ts";
import { Fault, fieldFault } from "#core/faults.ts";
import type { Instant, System } from "#core/system.ts";
import { TEMPLATES, type Template, type TemplateName } from "./gallery.ts";

/** Everything that was created from one template. */
export interface TemplateSet {
  id: number;
  template: TemplateName;
  assistantId: number;
  knowledgebaseId: number | null;
  toolId: number | null;
  callId: number | null;
  createdAt: Instant;
}

export type NewSet = Omit<TemplateSet, "id" | "createdAt"> & { accountId: number; now: Instant };

export interface TemplateStore {
  add(args: NewSet): Promise<TemplateSet>;
  /** Newest first. */
  list(accountId: number): Promise<TemplateSet[]>;
  find(accountId: number, id: number): Promise<TemplateSet | null>;
  remove(args: { accountId: number; id: number }): Promise<void>;
}

/** The user's choices for a template. */
interface Wanted {
  template: TemplateName;
  company: string;
  /** The website whose pages are read; null: none. */
  website: string | null;
  /** The tool's endpoint; null: a placeholder to be changed. */
  endpoint: string | null;
  languageId: number | null;
  timezone: string | null;
  /** True: the server's built-in caller calls the assistant at once. */
  withCall: boolean;
}

interface Made extends TemplateSet {
  /** Why the test call was not made; null: it was, or nobody wanted one. */
  callProblem: string | null;
}

interface TemplateOptions {
  store: TemplateStore;
  assistants: Pick<Assistants, "create" | "remove">;
  knowledgebases: Pick<Knowledgebases, "create" | "createDocument" | "remove">;
  tools: Pick<Tools, "create" | "remove">;
  /** The server's built-in caller speaks the lines; throws a Fault with the reason if it cannot. */
  tryCall(assistant: Assistant, lines: readonly string[]): Promise<{ id: number }>;
  removeCall(accountId: number, callId: number): Promise<void>;
  system: System;
}

export type Templates = ReturnType<typeof createTemplates>;

const EXAMPLE_ENDPOINT = "https://shop.example.com/orders/status";

export function createTemplates(options: TemplateOptions) {
  const { store, system } = options;
  return {
    create: async (accountId: number, wanted: Wanted): Promise<Made> => {
      const template = TEMPLATES[wanted.template];
      if (template.needsWebsite && wanted.website === null) {
        throw fieldFault("website", "The website field is required: the assistant answers from its pages.");
      }
      const made = await makeParts(options, accountId, template, wanted);
      const { assistant, knowledgebaseId, toolId } = made;
      const { id: callId, problem } = wanted.withCall
        ? await tryCall(options, assistant, template.lines)
        : { id: null, problem: null };
      const set = await store.add({
        accountId, template: wanted.template, assistantId: assistant.id, knowledgebaseId, toolId,
        callId, now: system.now(),
      });
      return { ...set, callProblem: problem };
    },
    list: store.list,
    /** Removes what still exists. Throws Fault 409 while its test call is live. */
    remove: async (accountId: number, id: number): Promise<void> => {
      const set = await store.find(accountId, id);
      if (!set) throw new Fault(404, "Template set not found");
      if (set.callId !== null) await unlessGone(options.removeCall(accountId, set.callId));
      await options.assistants.remove(accountId, set.assistantId);
      await removeParts(options, accountId, set);
      await store.remove({ accountId, id });
    },
  };
}

/** Ignores that something to be removed is gone already. */
async function unlessGone(removing: Promise<unknown>): Promise<void> {
  await removing.catch((error: unknown) => {
    if (!(error instanceof Fault && error.status === 404)) throw error;
  });
}

async function removeParts(
  { knowledgebases, tools }: TemplateOptions, accountId: number,
  { knowledgebaseId, toolId }: Pick<TemplateSet, "knowledgebaseId" | "toolId">,
): Promise<void> {
  if (toolId !== null) await unlessGone(tools.remove(accountId, toolId));
  if (knowledgebaseId !== null) await unlessGone(knowledgebases.remove(accountId, knowledgebaseId));
}

/** Creates all parts or none. */
async function makeParts(
  options: TemplateOptions, accountId: number, template: Template, wanted: Wanted,
): Promise<{ assistant: Assistant; knowledgebaseId: number | null; toolId: number | null }> {
  const parts: Pick<TemplateSet, "knowledgebaseId" | "toolId"> =
    { knowledgebaseId: null, toolId: null };
  try {
    if (template.tool) {
      const { tool } = template;
      const endpoint = wanted.endpoint ?? EXAMPLE_ENDPOINT;
      parts.toolId = (await options.tools.create(accountId, {
        ...tool, endpoint, headers: [], staticFields: [], mcp: null, bodyFormat: "json",
      })).id;
    }
    parts.knowledgebaseId = await makeKnowledge(options, accountId, template, wanted);
    const assistant = await options.assistants.create(accountId, {
      ...template.settings,
      status: "active",
      variables: { company: wanted.company },
      ...wanted.languageId === null ? {} : { language_id: wanted.languageId },
      ...wanted.timezone === null ? {} : { timezone: wanted.timezone },
      ...parts.toolId === null ? {} : { tool_ids: [parts.toolId] },
      ...parts.knowledgebaseId === null ? {} : {
        knowledgebase_id: parts.knowledgebaseId, knowledgebase_mode: "prompt",
      },
    });
    return { assistant, ...parts };
  } catch (error) {
    await removeParts(options, accountId, parts);
    throw error;
  }
}

async function makeKnowledge(
  { knowledgebases }: TemplateOptions, accountId: number,
  { title, questions, needsWebsite }: Template, { company, website }: Wanted,
): Promise<number | null> {
  if (questions.length === 0 && !needsWebsite) return null;
  const { id } = await knowledgebases.create(accountId, {
    name: `${company}: ${title}`, description: "Made from a template.",
  });
  if (questions.length > 0) {
    await knowledgebases.createDocument({
      accountId, knowledgebaseId: id, name: "Questions and answers", description: null, type: "faq",
      source: { written: { type: "faq", questions: [...questions] } },
    });
  }
  if (website !== null) {
    await knowledgebases.createDocument({
      accountId, knowledgebaseId: id, name: website, description: null, type: "website",
      source: { urls: [website], follow: 1 },
    });
  }
  return id;
}

/** Reports a refused call as `problem`: the other parts exist all the same. */
async function tryCall(
  { tryCall: ring }: TemplateOptions, assistant: Assistant, lines: readonly string[],
): Promise<{ id: number | null; problem: string | null }> {
  try {
    return { id: (await ring(assistant, lines)).id, problem: null };
  } catch (error) {
    if (error instanceof Fault) return { id: null, problem: error.message };
    throw error;
  }
}
