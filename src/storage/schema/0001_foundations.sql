-- Instants are integer microseconds since the epoch (UTC), money is integer micro-dollars,
-- booleans are 0/1, JSON is text that only the program reads.

CREATE TABLE accounts (
  id               INTEGER PRIMARY KEY,
  name             TEXT    NOT NULL,
  email            TEXT    NOT NULL,
  plan             TEXT    NOT NULL,
  -- The sum of the ledger; how much of it open reservations hold; head and length of the hash
  -- chain.
  balance_micros   INTEGER NOT NULL DEFAULT 0,
  reserved_micros  INTEGER NOT NULL DEFAULT 0 CHECK (reserved_micros >= 0),
  ledger_entries   INTEGER NOT NULL DEFAULT 0,
  ledger_hash      TEXT    NOT NULL DEFAULT '',
  event_sequence   INTEGER NOT NULL DEFAULT 0,
  created_at       INTEGER NOT NULL,
  CHECK (balance_micros - reserved_micros >= 0)
) STRICT;

CREATE TABLE api_keys (
  id            INTEGER PRIMARY KEY,
  account_id    INTEGER NOT NULL REFERENCES accounts (id),
  name          TEXT    NOT NULL,
  secret_hash   TEXT    NOT NULL,
  scopes        TEXT    NOT NULL,
  expires_at    INTEGER,
  last_used_at  INTEGER,
  revoked_at    INTEGER,
  created_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account_id);

-- Append-only; each entry's hash covers the one before it.
CREATE TABLE ledger (
  account_id            INTEGER NOT NULL REFERENCES accounts (id),
  number                INTEGER NOT NULL,
  kind                  TEXT    NOT NULL,
  -- The billed thing, e.g. 'turn:17': billed at most once, for ever.
  reference             TEXT    NOT NULL UNIQUE,
  amount_micros         INTEGER NOT NULL,
  balance_after_micros  INTEGER NOT NULL,
  created_at            INTEGER NOT NULL,
  hash                  TEXT    NOT NULL,
  PRIMARY KEY (account_id, number)
) STRICT, WITHOUT ROWID;
-- only sqlite
CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger
  BEGIN SELECT RAISE (ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_is_never_deleted BEFORE DELETE ON ledger
  BEGIN SELECT RAISE (ABORT, 'the ledger is append-only'); END;
-- end
-- only postgres
CREATE FUNCTION refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_ledger_change();
-- end

-- Money set aside for something that has begun; the row is gone once it is posted or voided.
CREATE TABLE reservations (
  reference      TEXT    PRIMARY KEY,
  account_id     INTEGER NOT NULL,
  amount_micros  INTEGER NOT NULL CHECK (amount_micros > 0),
  created_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The log everything else is a view of. One row serves two topics: its conversation and its account.
CREATE TABLE events (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id        INTEGER NOT NULL,
  account_sequence  INTEGER NOT NULL,
  conversation_id   INTEGER,
  sequence          INTEGER NOT NULL,
  type              TEXT    NOT NULL,
  data              TEXT    NOT NULL,
  created_at        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_account ON events (account_id, account_sequence);
CREATE UNIQUE INDEX events_by_conversation ON events (conversation_id, sequence)
  WHERE conversation_id IS NOT NULL;

CREATE TABLE folders (
  id          INTEGER PRIMARY KEY,
  account_id  INTEGER NOT NULL REFERENCES accounts (id),
  name        TEXT    NOT NULL,
  color       TEXT,
  UNIQUE (account_id, name)
) STRICT;

CREATE TABLE labels (
  id          INTEGER PRIMARY KEY,
  account_id  INTEGER NOT NULL REFERENCES accounts (id),
  name        TEXT    NOT NULL,
  color       TEXT,
  UNIQUE (account_id, name)
) STRICT;

CREATE TABLE phone_numbers (
  -- Never given twice: settings of assistants name numbers that may be gone.
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id    INTEGER NOT NULL REFERENCES accounts (id),
  phone_number  TEXT    NOT NULL,
  country_code  TEXT    NOT NULL,
  type          TEXT    NOT NULL CHECK (type IN ('normal', 'sip', 'caller_id')),
  created_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX phone_numbers_by_account ON phone_numbers (account_id);

CREATE TABLE assistants (
  id                INTEGER PRIMARY KEY,
  uuid              TEXT    NOT NULL UNIQUE,
  account_id        INTEGER NOT NULL REFERENCES accounts (id),
  name              TEXT    NOT NULL,
  type              TEXT    NOT NULL CHECK (type IN ('inbound', 'outbound')),
  status            TEXT    NOT NULL CHECK (status IN ('active', 'inactive')),
  mode              TEXT    NOT NULL CHECK (mode IN ('pipeline', 'multimodal', 'dualplex')),
  folder_id         INTEGER REFERENCES folders (id),
  phone_number_id   INTEGER REFERENCES phone_numbers (id),
  knowledgebase_id  INTEGER,
  created_at        INTEGER NOT NULL,
  -- Grows with every change of the row; caches and optimistic writes rely on it.
  updated_at        INTEGER NOT NULL,
  deleted_at        INTEGER,
  -- Every other setting, as JSON; what the database itself must know has a column. Last, so that
  -- the columns before it are read without its overflow pages.
  settings          TEXT    NOT NULL
) STRICT;
CREATE INDEX assistants_by_account ON assistants (account_id, id) WHERE deleted_at IS NULL;
CREATE INDEX assistants_by_folder ON assistants (folder_id) WHERE folder_id IS NOT NULL;
CREATE INDEX assistants_by_knowledgebase ON assistants (knowledgebase_id)
  WHERE knowledgebase_id IS NOT NULL;
CREATE INDEX assistants_by_number ON assistants (phone_number_id)
  WHERE phone_number_id IS NOT NULL;
-- A number rings at one assistant.
CREATE UNIQUE INDEX assistants_inbound_number ON assistants (phone_number_id)
  WHERE type = 'inbound' AND deleted_at IS NULL AND phone_number_id IS NOT NULL;

CREATE TABLE assistant_labels (
  assistant_id  INTEGER NOT NULL REFERENCES assistants (id),
  label_id      INTEGER NOT NULL REFERENCES labels (id),
  PRIMARY KEY (assistant_id, label_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX assistant_labels_by_label ON assistant_labels (label_id);

-- What an assistant's conversations cost or have reserved on one UTC day; caps its daily spending.
CREATE TABLE assistant_spend (
  assistant_id  INTEGER NOT NULL,
  day           TEXT    NOT NULL,
  micros        INTEGER NOT NULL,
  PRIMARY KEY (assistant_id, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
  id                   INTEGER PRIMARY KEY,
  uuid                 TEXT    NOT NULL UNIQUE,
  account_id           INTEGER NOT NULL REFERENCES accounts (id),
  assistant_id         INTEGER NOT NULL REFERENCES assistants (id),
  type                 TEXT    NOT NULL,
  state                TEXT    NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'ended')),
  ai_enabled           INTEGER NOT NULL DEFAULT 1,
  variables            TEXT    NOT NULL,
  external_identifier  TEXT,
  message_count        INTEGER NOT NULL DEFAULT 0,
  total_cost_micros    INTEGER NOT NULL DEFAULT 0,
  event_sequence       INTEGER NOT NULL DEFAULT 0,
  last_message_at      INTEGER NOT NULL,
  -- When to check next whether it has been inactive; moved by the sweep, never by a message.
  check_at             INTEGER NOT NULL,
  created_at           INTEGER NOT NULL,
  updated_at           INTEGER NOT NULL
) STRICT;
CREATE INDEX conversations_by_account ON conversations (account_id, id);
CREATE INDEX conversations_to_check ON conversations (check_at) WHERE state = 'open';
CREATE UNIQUE INDEX conversations_by_customer ON conversations (assistant_id, external_identifier)
  WHERE external_identifier IS NOT NULL;

CREATE TABLE messages (
  id               INTEGER PRIMARY KEY,
  conversation_id  INTEGER NOT NULL REFERENCES conversations (id),
  role             TEXT    NOT NULL CHECK (role IN ('user', 'assistant')),
  content          TEXT    NOT NULL,
  function_calls   TEXT,
  stopped          INTEGER NOT NULL DEFAULT 0,
  created_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_by_conversation ON messages (conversation_id, id);

-- One user message and what became of it.
CREATE TABLE turns (
  id                INTEGER PRIMARY KEY,
  conversation_id   INTEGER NOT NULL,
  state             TEXT    NOT NULL
    CHECK (state IN ('open', 'stored', 'done', 'stopped', 'failed', 'interrupted')),
  idempotency_key   TEXT,
  request_hash      TEXT,
  user_sequence     INTEGER NOT NULL,
  reply_message_id  INTEGER,
  price_micros      INTEGER NOT NULL,
  error             TEXT,
  -- When the present attempt began: a failed turn may be tried again under its key.
  begun_at          INTEGER NOT NULL,
  finished_at       INTEGER
) STRICT;
CREATE UNIQUE INDEX turns_by_key ON turns (conversation_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX turns_open ON turns (id) WHERE state = 'open';
