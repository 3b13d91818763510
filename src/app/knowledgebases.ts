// Composition root, the part about knowledgebases: the process that reads documents,
// the server that embeds them. Called by features.ts.
import { createExtractor } from "#features/knowledgebases/extraction.ts";
import { createKnowledgebases } from "#features/knowledgebases/knowledgebases.ts";
import { createDocumentProcessor } from "#features/knowledgebases/processing.ts";
import { createRetrieval } from "#features/knowledgebases/retrieval.ts";
import type { Config } from "#config/config.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Removals } from "#files/removals.ts";
import { createOpenAiEmbedder } from "#providers/embeddings/openai-compatible.ts";
import type { Storage } from "#storage/storage.ts";
import type { FilePlaces } from "./files.ts";

interface KnowledgeOptions extends Pick<FilePlaces, "files" | "uploadsDir"> {
  removals: Removals;
  config: Config;
  storage: Pick<Storage, "knowledgebases">;
  bus: EventBus;
  system: System;
  log: Logger;
  onFound(accountId: number, document: string): void;
}

function createEmbedder(config: Config) {
  const { PARLEY_EMBEDDINGS_URL: url, PARLEY_EMBEDDINGS_KEY: key } = config;
  return url === null
    ? null
    : createOpenAiEmbedder({ url, key, model: config.PARLEY_EMBEDDINGS_MODEL });
}

export function createKnowledge(options: KnowledgeOptions) {
  const { config, storage, files, removals, uploadsDir, bus, system, log } = options;
  const store = storage.knowledgebases;
  const { PARLEY_DOCUMENTS_MAX: documentsMax } = config;
  const embedder = createEmbedder(config);
  const extractor = createExtractor({
    log, system, documentsMax, allowPrivateNetworks: config.PARLEY_ALLOW_PRIVATE_NETWORKS,
  });
  // A pool of its own: an import must not wait for documents, because its sender is watching.
  const sheets = createExtractor({
    log, system, documentsMax: LIMITS.sheetsAtOnceMax, allowPrivateNetworks: [],
  });
  const processor = createDocumentProcessor({
    store, extractor, embedder, files, removals, folder: uploadsDir, documentsMax, bus, system, log,
  });
  const { enqueue, forget } = processor;
  return {
    knowledgebases: createKnowledgebases({
      store, files, removals, bus, system, enqueue, forget,
    }),
    processor,
    extractor,
    sheets,
    uploadsDir,
    retrieval: createRetrieval({ store, embedder, log, onFound: options.onFound }),
    close: async (): Promise<void> => {
      await Promise.all([processor.close(), sheets.close()]);
      await embedder?.close();
    },
  };
}
