-- Webhook endpoints and their deliveries.

CREATE TABLE webhook_endpoints (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id       INTEGER NOT NULL REFERENCES accounts (id),
  -- For an assistant's webhook, whose URL is in the assistant's settings.
  assistant_id     INTEGER REFERENCES assistants (id),
  purpose          TEXT    NOT NULL
    CHECK (purpose IN ('account', 'post_call', 'conversation_ended', 'inbound_call')),
  url              TEXT    NOT NULL,
  -- Event types, as JSON; only for purpose `account`.
  events           TEXT    NOT NULL DEFAULT '[]',
  status           TEXT    NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled')),
  disabled_reason  TEXT,
  -- Signing secrets are derived from the server's; the previous one stays valid for a while.
  secret_version   INTEGER NOT NULL DEFAULT 1,
  rotated_at       INTEGER,
  -- Since when deliveries have failed; null: the last one succeeded.
  failing_since    INTEGER,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  UNIQUE (assistant_id, purpose)
) STRICT;
CREATE INDEX webhook_endpoints_by_account ON webhook_endpoints (account_id, id);

CREATE TABLE webhook_deliveries (
  id                 INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id         INTEGER NOT NULL,
  endpoint_id        INTEGER NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
  -- The same at every attempt and replay.
  message_id         TEXT    NOT NULL,
  type               TEXT    NOT NULL,
  call_id            INTEGER,
  conversation_uuid  TEXT,
  -- Added to the body when it is sent, because links to a recording expire.
  recording_file     TEXT,
  -- The body still lacks the model's evaluation of the conversation.
  needs_evaluation   INTEGER NOT NULL DEFAULT 0,
  state              TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
  attempts           INTEGER NOT NULL DEFAULT 0,
  next_at            INTEGER NOT NULL,
  last_status        INTEGER,
  last_error         TEXT,
  -- The beginning of the response.
  response           TEXT,
  replay_of          INTEGER,
  created_at         INTEGER NOT NULL,
  finished_at        INTEGER,
  body               TEXT    NOT NULL
) STRICT;
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint_id, id)
  WHERE state = 'pending';
CREATE INDEX webhook_deliveries_by_account ON webhook_deliveries (account_id, id);
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (finished_at)
  WHERE finished_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_conversation ON webhook_deliveries (endpoint_id, conversation_uuid)
  WHERE conversation_uuid IS NOT NULL;
