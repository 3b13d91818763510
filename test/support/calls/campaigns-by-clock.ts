// Campaigns on a manual clock: the real storage and dialler, a scripted carrier, and crashes in
// between. A call ends as `fate` says; everything that was dialled is recorded.
import { rmSync } from "node:fs";
import { createDialler, type Dialler } from "#features/campaigns/dialler.ts";
import type { Campaign, CampaignFields, CampaignStore } from "#features/campaigns/campaigns.ts";
import type { Call } from "#features/calls/records/records.ts";
import { loadModels } from "#app/models.ts";
import { readConfig } from "#config/config.ts";
import { createLogger } from "#core/logger.ts";
import { createFeatures } from "#app/features.ts";
import { openFiles } from "#app/files.ts";
import { WEEKDAYS } from "#core/days.ts";
import { readPhoneNumber } from "#features/leads/phone.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { loneCluster } from "#support/nodes/cluster.ts";
import { assistantBody, openBeside, testDataDir } from "#support/server.ts";

export type Fate =
  | "human" | "goal" | "machine" | "busy" | "no-answer" | "failed"
  /** The process dies before it dials. */
  | "crash";

export interface Dialled {
  callId: number;
  leadId: number;
  campaignId: number;
  number: string;
  from: string | null;
  at: number;
  endedAt: number | null;
}

export interface WorldOptions {
  startMs: number;
  fate(dialled: Dialled): { fate: Fate; seconds: number };
  /** USD of the account; calls cost 0.10 a minute then. Absent: calls are free. */
  balanceMicros?: number;
  onDial?(dialled: Dialled, live: Dialled[]): void;
  /** Whether the server has room for one more call; absent: always. */
  hasRoom?(): boolean;
  /** Whether the numbers of a campaign cannot be read. */
  fails?(campaignId: number): boolean;
}

export const FIELDS: Omit<CampaignFields, "assistantId"> = {
  name: "Sim", timeZone: "America/New_York", parallelMax: 3, startMinute: 0, endMinute: 1439,
  days: [...WEEKDAYS], maxRetries: 2, retryIntervalMinutes: 60, retryOnVoicemail: false,
  retryOnGoalIncomplete: false, goalVariable: null, completesWhenDone: true, phoneNumberIds: [],
};

const ENDED = { turns: [], hasRecording: false } as const;
const OPTIONS = { log: createLogger("silent") };

export async function createWorld(options: WorldOptions) {
  const system = createManualSystem(options.startMs);
  const dataDir = testDataDir();
  const outcome = readConfig({
    PARLEY_DATA_DIR: dataDir, PARLEY_SPEECH: "loopback", PARLEY_LOG_LEVEL: "silent",
    PARLEY_CALL_PRICE: options.balanceMicros === undefined ? "0" : "0.1",
  });
  if (outcome.kind === "invalid") throw new Error(outcome.problems.join("; "));
  const models = loadModels(outcome.config);
  if (models.kind === "invalid") throw new Error(models.problems.join("; "));
  const storage = await openBeside(dataDir, "forgets");
  const parts = { config: outcome.config, models: models.entries, system, ...OPTIONS };
  const features = createFeatures(
    parts, {
      storage, places: await openFiles(parts), hosted: new Map(), wire: null,
      nodes: { ...loneCluster(storage.nodeId()), hasClock: () => true, holdsForSeconds: () => 27 },
    });
  const { calls, bus, assistants, accounts } = features;
  const { id: accountId } = await accounts.create("Sim", "sim@example.org");
  if (options.balanceMicros) await accounts.credit(accountId, options.balanceMicros);
  const assistant = await assistants.create(
    accountId, assistantBody({ type: "outbound", status: "active" }) as never);

  const dialled: Dialled[] = [];
  const logged: string[] = [];
  const log = {
    error: (_: object, text: string) => logged.push(text),
    info: (text: string) => logged.push(text),
  } as never;
  const work = new Set<Promise<void>>();
  let crashes = false;
  let crashed = Promise.withResolvers<void>();
  const live = (): Dialled[] => dialled.filter(({ endedAt }) => endedAt === null);
  const track = (promise: Promise<void>): void => {
    work.add(promise);
    void promise.finally(() => work.delete(promise));
  };
  const finish = async (entry: Dialled, fate: Fate): Promise<void> => {
    if (entry.endedAt !== null) return;
    entry.endedAt = system.now();
    const call = { id: entry.callId, accountId };
    if (fate === "busy" || fate === "no-answer" || fate === "failed") {
      return calls.change(call, fate, { reason: "carrier_failed" });
    }
    await calls.end(call, {
      finalStatus: "ended_by_customer", reason: "customer_hung_up", ...ENDED,
    });
    await calls.finish(call, {
      evaluation: { reached: fate === "goal" }, evaluationError: null,
    });
  };
  const dial = async (call: Call): Promise<void> => {
    const entry: Dialled = {
      callId: call.id, leadId: call.leadId ?? 0, campaignId: call.campaignId ?? 0,
      number: call.customerPhone ?? "", from: call.assistantPhone, at: system.now(), endedAt: null,
    };
    const { fate, seconds } = options.fate(entry);
    if (fate === "crash") {
      crashes = true;
      return crashed.resolve();
    }
    options.onDial?.(entry, live());
    dialled.push(entry);
    const isTalk = fate === "human" || fate === "goal" || fate === "machine";
    const by = fate === "machine" ? "machine" : "human";
    track(calls.change(call, "ringing", {}).then(() => isTalk
      ? calls.change(call, "in-progress", { answeredBy: by })
      : undefined));
    system.after(seconds * 1000, () => track(finish(entry, fate)));
  };

  let kill = (): void => undefined;
  let dialler: Dialler;
  const boot = (): void => {
    let isDead = false;
    const alive = <T>(value: T): T | Promise<T> => isDead ? new Promise<T>(() => undefined) : value;
    const { campaigns } = storage;
    // A dead process's requests may be committed, but it never receives the results.
    const store: CampaignStore = {
      ...campaigns,
      running: () => campaigns.running(),
      claim: async (args) => alive(await campaigns.claim(args)),
      settle: async (args) => alive(await campaigns.settle(args)),
      stop: async (args) => alive(await campaigns.stop(args)),
    };
    dialler = createDialler({
      store, bus, system, log, dial,
      readyAssistant: ({ assistantId }) => assistants.find(accountId, assistantId),
      terms: calls.terms,
      hold: () => Promise.resolve(options.hasRoom?.() ?? true ? () => undefined : null),
      secondsFor: calls.secondsFor,
      isPlacedElsewhere: () => Promise.resolve(false),
      numbersOf: async ({ id: campaignId, phoneNumberIds }) => {
        if (options.fails?.(campaignId)) throw new Error("unreadable");
        return phoneNumberIds.map((id) => `+1555020000${id}`);
      },
      giveUp: (call, reason) => calls.change(call, "failed", { reason }),
    });
    kill = () => {
      isDead = true;
      void dialler.close();
    };
    dialler.start();
  };
  const crash = async (): Promise<void> => {
    crashes = false;
    crashed = Promise.withResolvers();
    kill();
    for (const entry of live()) entry.endedAt = system.now();
    // Writes are in order: after this one, those of the dead process are done as well.
    await calls.setVariables({ id: 0, accountId }, {});
    await calls.recover();
    boot();
  };
  const settle = async (): Promise<void> => {
    do {
      await Promise.all(work);
      // Events are published once all callers of the commit have their results.
      await new Promise(process.nextTick);
      if (crashes) await crash();
      // A pass the crash cut off never ends: it is not waited for.
      await Promise.race([dialler.idle(), crashed.promise]);
    } while (work.size > 0 || crashes);
  };
  boot();
  return {
    system, storage, features, accountId, assistant, dialled, logged, crash,
    step: async (ms: number): Promise<void> => {
      system.advance(ms);
      await settle();
    },
    settle,
    wake: () => dialler.wake(),
    freed: () => dialler.freed(),
    newCampaign: async (changes: Partial<CampaignFields> = {}): Promise<Campaign> => {
      const fields = { ...FIELDS, assistantId: assistant.id, ...changes };
      return features.campaigns.create(accountId, fields);
    },
    addLead: async (campaignId: number, number: string, contacts: string[] = []) => {
      const read = (text: string) => ({ ...readPhoneNumber(text)!, variables: {} });
      const lead = { ...read(number), contacts: contacts.map(read) };
      return features.leads.create(accountId, campaignId, lead, true);
    },
    start: async (campaignId: number): Promise<void> => {
      await features.campaigns.start(accountId, campaignId);
      dialler.wake();
      await settle();
    },
    close: async (): Promise<void> => {
      await dialler.close();
      await features.voice.close();
      await features.delivery.close();
      await storage.close();
      rmSync(dataDir, { recursive: true });
    },
  };
}

export type World = Awaited<ReturnType<typeof createWorld>>;

export const campaignOf = (world: World, campaignId: number): Promise<Campaign> =>
  world.features.campaigns.get(world.accountId, campaignId);
