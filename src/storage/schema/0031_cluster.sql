-- Processes that serve the database, and what each of them owns. A process inserts its row when it
-- starts; ids are never reused, so a write naming one fails once the process was declared gone.
-- Instants here are by the database's clock.
CREATE TABLE nodes (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  name            TEXT    NOT NULL,
  -- Leads to this process only; null: it has no address of its own.
  url             TEXT,
  protocol        INTEGER NOT NULL,
  schema_version  INTEGER NOT NULL,
  state           TEXT    NOT NULL CHECK (state IN ('live', 'draining', 'gone')),
  started_at      INTEGER NOT NULL,
  beat_at         INTEGER NOT NULL,
  -- Null: the process lives for as long as it holds its data folder's lock.
  lease_until     INTEGER,
  calls           INTEGER NOT NULL DEFAULT 0,
  gone_at         INTEGER,
  -- When nothing owned by it was left.
  recovered_at    INTEGER
) STRICT;
CREATE INDEX nodes_to_recover ON nodes (id) WHERE recovered_at IS NULL;

-- What one process does for all, e.g. 'clock': the scheduled work.
CREATE TABLE leases (
  name     TEXT    PRIMARY KEY,
  node_id  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE used_tickets (
  ticket      TEXT    PRIMARY KEY,
  expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX used_tickets_by_end ON used_tickets (expires_at);

-- Which process took a call, for a carrier that offers the call again to another.
CREATE TABLE carrier_offers (
  carrier     TEXT    NOT NULL,
  call_id     TEXT    NOT NULL,
  node_id     INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (carrier, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX carrier_offers_by_age ON carrier_offers (created_at);

-- The id of the owner; null or a dead process: anyone may take it.
ALTER TABLE turns ADD COLUMN node_id INTEGER;
ALTER TABLE calls ADD COLUMN node_id INTEGER;
ALTER TABLE documents ADD COLUMN node_id INTEGER;
ALTER TABLE webhook_endpoints ADD COLUMN node_id INTEGER;
ALTER TABLE number_purchases ADD COLUMN node_id INTEGER;
ALTER TABLE sip_trunks ADD COLUMN node_id INTEGER;

-- A conversation has one open turn at a time.
DROP INDEX turns_open;
CREATE UNIQUE INDEX turns_one_open ON turns (conversation_id) WHERE state = 'open';
