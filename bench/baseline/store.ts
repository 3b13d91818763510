// What a careful server without group commit does per message: a transaction that charges and
// stores the user's message, another that stores the reply, each on disk before it goes on.
import Database from "better-sqlite3";
import { randomUUID } from "node:crypto";

export interface Turn {
  conversation: number;
  history: { role: "user" | "assistant"; content: string }[];
}

export function openStore(path: string) {
  const db = new Database(path);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec(`
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance_micros INTEGER NOT NULL);
    CREATE TABLE conversations (id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE);
    CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation_id INTEGER NOT NULL,
      role TEXT NOT NULL, content TEXT NOT NULL, created_at INTEGER NOT NULL);
    CREATE INDEX messages_by_conversation ON messages (conversation_id, id);
    CREATE TABLE ledger (id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL,
      reference TEXT NOT NULL UNIQUE, amount_micros INTEGER NOT NULL, created_at INTEGER NOT NULL);
    INSERT INTO accounts VALUES (1, 1000000000000);
  `);
  const insertConversation = db.prepare("INSERT INTO conversations (uuid) VALUES (?)");
  const find = db.prepare<[string], { id: number }>("SELECT id FROM conversations WHERE uuid = ?");
  const charge = db.prepare(
    "UPDATE accounts SET balance_micros = balance_micros - 10000 WHERE id = 1 AND balance_micros >= 10000");
  const enter = db.prepare(
    "INSERT INTO ledger (account_id, reference, amount_micros, created_at) VALUES (1, ?, -10000, ?)");
  const insertMessage = db.prepare(
    "INSERT INTO messages (conversation_id, role, content, created_at) VALUES (?, ?, ?, ?)");
  const history = db.prepare<[number], Turn["history"][number]>(
    "SELECT role, content FROM messages WHERE conversation_id = ? ORDER BY id DESC LIMIT 200");
  return {
    create: (): string => {
      const uuid = randomUUID();
      insertConversation.run(uuid);
      return uuid;
    },
    /** Null when the balance is too low or there is no such conversation. */
    begin: db.transaction((uuid: string, text: string): Turn | null => {
      const found = find.get(uuid);
      if (!found || charge.run().changes === 0) return null;
      const now = Date.now();
      const { lastInsertRowid } = insertMessage.run(found.id, "user", text, now);
      enter.run(`message:${lastInsertRowid}`, now);
      return { conversation: found.id, history: history.all(found.id).reverse() };
    }),
    complete: (turn: Turn, reply: string): void => {
      insertMessage.run(turn.conversation, "assistant", reply, Date.now());
    },
  };
}

export type Store = ReturnType<typeof openStore>;
