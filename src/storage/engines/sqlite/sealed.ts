// Finds every sealed value in a database file, to test a secret against them, and whether anything
// derived from the secret was given to others.
import type { SecretBox } from "#core/secrets.ts";
import type { BuiltInTool } from "#features/assistants/built-in-tools.ts";
import { calcomPlace, isIntegration, isSealedKey } from "#features/assistants/calcom-keys.ts";
import { passwordPlace } from "#features/phone-numbers/sip-trunks.ts";
import { toolPlace } from "#features/tools/tools.ts";
import { isCurrent, openForInspection, type Db } from "./database.ts";

interface Sealed {
  /** Describes it for people: `headers of tool 3`. */
  what: string;
  sealed: string;
  place: string;
}

interface Row {
  id: number;
  account_id: number;
  uuid: string;
}

type ToolRow = Row & { headers: string; static_fields: string };
type TrunkRow = Row & { phone_number: string; password: string };
type AssistantRow = Row & { settings: string };

function* sealedOfTools(db: Db): Iterable<Sealed> {
  const rows = db.prepare<[], ToolRow>(
    "SELECT id, account_id, uuid, headers, static_fields FROM tools ORDER BY id").iterate();
  for (const { id, account_id: accountId, uuid, headers, static_fields: fields } of rows) {
    const place = (column: string): string => toolPlace({ accountId, uuid }, column);
    yield { what: `headers of tool ${id}`, sealed: headers, place: place("headers") };
    if (fields !== "") {
      yield { what: `static fields of tool ${id}`, sealed: fields, place: place("static_fields") };
    }
  }
}

function* sealedOfTrunks(db: Db): Iterable<Sealed> {
  const rows = db.prepare<[], TrunkRow>(`
    SELECT phone_numbers.id, account_id, uuid, phone_number, password
    FROM sip_trunks JOIN phone_numbers ON phone_numbers.id = sip_trunks.phone_number_id
    ORDER BY phone_numbers.id`).iterate();
  for (const { account_id: accountId, uuid, phone_number: number, password } of rows) {
    const place = passwordPlace(accountId, uuid);
    yield { what: `password of SIP trunk ${number}`, sealed: password, place };
  }
}

function* sealedOfAssistants(db: Db): Iterable<Sealed> {
  const rows = db.prepare<[], AssistantRow>(`
    SELECT id, account_id, uuid, settings FROM assistants
    WHERE deleted_at IS NULL ORDER BY id`).iterate();
  for (const { id, account_id: accountId, uuid, settings } of rows) {
    const { tools = [] } = JSON.parse(settings) as { tools?: BuiltInTool[] };
    for (const tool of tools) {
      // A key stored before keys were sealed gets sealed at the next start.
      if (!isIntegration(tool) || !isSealedKey(tool.calcom_api_key)) continue;
      yield {
        what: `Cal.com key of assistant ${id}`, sealed: tool.calcom_api_key,
        place: calcomPlace({ accountId, uuid }),
      };
    }
  }
}

type Trial =
  /** The schema is an older program's; the next start migrates it. */
  | { kind: "too_old" }
  | {
      kind: "tried"; count: number; closed: string[];
      /** Something was sealed with a secret, or others hold something derived from it. */
      needsSecret: boolean;
    };

/** Webhook receivers and sites verify signatures with keys derived from the secret. */
const DERIVED = `
  SELECT 1 FROM webhook_endpoints UNION ALL
  SELECT 1 FROM assistants WHERE deleted_at IS NULL AND identity_number > 0 LIMIT 1`;

const NAMED_MAX = 10;

/** The names of some values that cannot be opened, and how many more there are. */
export function namesOf(closed: string[]): string {
  const more = closed.length > NAMED_MAX ? ` and ${closed.length - NAMED_MAX} more` : "";
  return closed.slice(0, NAMED_MAX).join(", ") + more;
}

/** Tries to open all sealed values; `closed` names those it cannot open. Null: no secret. */
export function trySealed(path: string, box: SecretBox | null): Trial {
  const db = openForInspection(path);
  try {
    if (!isCurrent(db)) return { kind: "too_old" };
    const closed: string[] = [];
    let count = 0;
    for (const kind of [sealedOfTools, sealedOfTrunks, sealedOfAssistants]) {
      for (const sealed of kind(db)) {
        count += 1;
        if (!box || box.tryOpen(sealed.sealed, sealed.place) === null) closed.push(sealed.what);
      }
    }
    const needsSecret = count > 0 || db.prepare(DERIVED).get() !== undefined;
    return { kind: "tried", count, closed, needsSecret };
  } finally {
    db.close();
  }
}
