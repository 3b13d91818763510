-- Calls and their transcripts. The states are those of src/features/calls/records/status.ts.

CREATE TABLE calls (
  id                     INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id             INTEGER NOT NULL REFERENCES accounts (id),
  assistant_id           INTEGER NOT NULL REFERENCES assistants (id),
  type                   TEXT    NOT NULL CHECK (type IN ('inbound', 'outbound', 'web')),
  status                 TEXT    NOT NULL,
  -- What the status `ended` turns into when the work after the call is done.
  final_status           TEXT,
  end_reason             TEXT,
  conversation_uuid      TEXT,
  assistant_phone        TEXT,
  customer_phone         TEXT,
  answered_by            TEXT    NOT NULL DEFAULT 'unknown',
  answered_at            INTEGER,
  -- Until when a call in progress is known to have lasted; after a crash it is billed up to here.
  last_beat_at           INTEGER,
  ended_at               INTEGER,
  duration_seconds       INTEGER NOT NULL DEFAULT 0,
  price_per_minute       INTEGER NOT NULL,
  carrier_cost_micros    INTEGER NOT NULL DEFAULT 0,
  total_cost_micros      INTEGER NOT NULL DEFAULT 0,
  recording_file         TEXT,
  evaluation_error       TEXT,
  event_sequence         INTEGER NOT NULL DEFAULT 0,
  entries                INTEGER NOT NULL DEFAULT 0,
  created_at             INTEGER NOT NULL,
  updated_at             INTEGER NOT NULL,
  variables              TEXT    NOT NULL,
  evaluation             TEXT    NOT NULL DEFAULT '{}',
  webhook_response       TEXT    NOT NULL DEFAULT '{}',
  turns                  TEXT    NOT NULL DEFAULT '[]'
) STRICT;
CREATE INDEX calls_by_account ON calls (account_id, id);
CREATE INDEX calls_unfinished ON calls (account_id, id)
  WHERE status IN ('initiated', 'ringing', 'in-progress', 'ended');
CREATE INDEX calls_recorded ON calls (ended_at) WHERE recording_file IS NOT NULL;

CREATE TABLE call_entries (
  call_id         INTEGER NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
  number          INTEGER NOT NULL,
  speaker         TEXT    NOT NULL CHECK (speaker IN ('assistant', 'customer')),
  text            TEXT    NOT NULL,
  start_ms        INTEGER NOT NULL,
  end_ms          INTEGER NOT NULL,
  interrupted     INTEGER NOT NULL,
  function_calls  TEXT,
  PRIMARY KEY (call_id, number)
) STRICT, WITHOUT ROWID;

ALTER TABLE events ADD COLUMN call_id INTEGER;
CREATE UNIQUE INDEX events_by_call ON events (call_id, sequence) WHERE call_id IS NOT NULL;
