// Composition root, the part about knowledgebases: their folders, the process that reads documents,
// the server that embeds them. Called by features.ts.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createExtractor } from "#features/knowledgebases/extraction.ts";
import { createKnowledgebases } from "#features/knowledgebases/knowledgebases.ts";
import { createDocumentProcessor } from "#features/knowledgebases/processing.ts";
import { createRetrieval } from "#features/knowledgebases/retrieval.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import { createOpenAiEmbedder } from "#providers/embeddings/openai-compatible.ts";
import type { Storage } from "#storage/storage.ts";

interface KnowledgeOptions {
  config: Config;
  storage: Pick<Storage, "knowledgebases">;
  bus: EventBus;
  system: System;
  log: Logger;
}

function createEmbedder(config: Config) {
  const { PARLEY_EMBEDDINGS_URL: url, PARLEY_EMBEDDINGS_KEY: key } = config;
  return url === null
    ? null
    : createOpenAiEmbedder({ url, key, model: config.PARLEY_EMBEDDINGS_MODEL });
}

export function createKnowledge({ config, storage, bus, system, log }: KnowledgeOptions) {
  const filesDir = join(config.PARLEY_DATA_DIR, "documents");
  const uploadsDir = join(config.PARLEY_DATA_DIR, "uploads");
  // What was arriving when the last process ended belongs to nobody.
  rmSync(uploadsDir, { recursive: true, force: true });
  for (const folder of [filesDir, uploadsDir]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const store = storage.knowledgebases;
  const { PARLEY_DOCUMENTS_MAX: documentsMax } = config;
  const embedder = createEmbedder(config);
  const extractor = createExtractor({
    log, system, documentsMax, allowPrivateNetworks: config.PARLEY_ALLOW_PRIVATE_NETWORKS,
  });
  const processor = createDocumentProcessor({
    store, extractor, embedder, filesDir, documentsMax, bus, system, log,
  });
  const { enqueue, forget } = processor;
  return {
    knowledgebases: createKnowledgebases({ store, filesDir, bus, system, enqueue, forget }),
    processor,
    extractor,
    uploadsDir,
    retrieval: createRetrieval({ store, embedder, log }),
    close: async (): Promise<void> => {
      await processor.close();
      await embedder?.close();
    },
  };
}
