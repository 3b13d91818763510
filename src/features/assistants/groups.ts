// Folders and labels: two ways to group assistants, with the same shape. An assistant is in one
// folder at most and has any number of labels; deleting either removes only the link.
import { Fault, fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { deletedInSteps } from "#core/steps.ts";
import type { Instant, System } from "#core/system.ts";

export const COLORS = [
  "gray", "slate", "red", "orange", "amber", "green", "teal", "blue", "purple", "pink",
] as const;
export type Color = (typeof COLORS)[number];

export interface Group {
  id: number;
  accountId: number;
  name: string;
  color: Color | null;
  /** Deleted assistants are not counted. */
  assistantsCount: number;
}

/** Absent members stay as they are. */
export interface GroupChanges {
  name?: string;
  color?: Color | null;
}

export type GroupOutcome =
  | { kind: "saved"; group: Group }
  | { kind: "name_taken" }
  | { kind: "not_found" };

/** Folders and labels have a store each. A name is unique within the account. */
export interface GroupStore {
  create(args: { accountId: number; name: string; color: Color | null }): Promise<GroupOutcome>;
  update(
    args: { accountId: number; groupId: number; changes: GroupChanges },
  ): Promise<GroupOutcome>;
  /**
   * Removes it from its assistants, and from `rows` conversations at most: it is gone once none is
   * left. Null: the account has no such group.
   */
  remove(
    args: { accountId: number; groupId: number; rows: number; now: Instant },
  ): Promise<{ isGone: boolean } | null>;
  /** Oldest first. */
  page(
    accountId: number,
    args: { page: number; perPage: number },
  ): Promise<{ items: Group[]; total: number }>;
}

export interface GroupUseCases {
  create(accountId: number, name: string, color?: Color | null): Promise<Group>;
  /** Fault 404 when the account has no such group, 422 when another has the name. */
  update(accountId: number, groupId: number, changes: GroupChanges): Promise<Group>;
  /** False when the account has no such group. */
  remove(accountId: number, groupId: number): Promise<boolean>;
  page: GroupStore["page"];
}

export interface Groups {
  folders: GroupUseCases;
  labels: GroupUseCases;
}

export function createGroups(options: {
  folders: GroupStore;
  labels: GroupStore;
  system: System;
}): Groups {
  const { folders, labels, system } = options;
  return {
    folders: createUseCases(folders, "Folder", system),
    labels: createUseCases(labels, "Label", system),
  };
}

function createUseCases(store: GroupStore, noun: string, system: System): GroupUseCases {
  const saved = (outcome: GroupOutcome): Group => {
    switch (outcome.kind) {
      case "saved":
        return outcome.group;
      case "name_taken":
        throw fieldFault("name", "The name has already been taken.");
      case "not_found":
        throw new Fault(404, `${noun} not found`);
    }
  };
  return {
    create: async (accountId, name, color = null) =>
      saved(await store.create({ accountId, name: name.trim(), color })),
    update: async (accountId, groupId, { name, color }) => {
      const changes: GroupChanges = {};
      if (name !== undefined) changes.name = name.trim();
      if (color !== undefined) changes.color = color;
      return saved(await store.update({ accountId, groupId, changes }));
    },
    remove: (accountId, groupId) => deletedInSteps(() => store.remove({
      accountId, groupId, rows: LIMITS.conversationLabelsPerWrite, now: system.now(),
    })),
    page: store.page,
  };
}
