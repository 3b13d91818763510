-- Campaigns, the people they call, and the numbers nobody may call.

CREATE TABLE campaigns (
  id                          INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id                  INTEGER NOT NULL REFERENCES accounts (id),
  assistant_id                INTEGER NOT NULL REFERENCES assistants (id),
  name                        TEXT    NOT NULL,
  status                      TEXT    NOT NULL
    CHECK (status IN ('draft', 'in-progress', 'stopped', 'completed')),
  timezone                    TEXT    NOT NULL,
  max_calls_in_parallel       INTEGER NOT NULL,
  -- Minutes of the local day; the end is the last minute in which calls may begin.
  start_minute                INTEGER NOT NULL,
  end_minute                  INTEGER NOT NULL,
  -- Names of weekdays, as JSON.
  allowed_days                TEXT    NOT NULL,
  max_retries                 INTEGER NOT NULL,
  retry_interval_minutes      INTEGER NOT NULL,
  retry_on_voicemail          INTEGER NOT NULL,
  retry_on_goal_incomplete    INTEGER NOT NULL,
  goal_completion_variable    TEXT,
  mark_complete_when_no_leads INTEGER NOT NULL,
  -- Ids, as JSON; calls take them in turn.
  phone_number_ids            TEXT    NOT NULL,
  calls_made                  INTEGER NOT NULL DEFAULT 0,
  -- The circuit breaker: carrier failures in a row, and until when no calls are placed.
  failures                    INTEGER NOT NULL DEFAULT 0,
  paused_until                INTEGER,
  created_at                  INTEGER NOT NULL,
  updated_at                  INTEGER NOT NULL
) STRICT;
CREATE INDEX campaigns_by_account ON campaigns (account_id, id);
CREATE INDEX campaigns_running ON campaigns (id) WHERE status = 'in-progress';

CREATE TABLE leads (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id    INTEGER NOT NULL REFERENCES accounts (id),
  campaign_id   INTEGER NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  -- Of a secondary contact: its lead, and its place among the contacts of that (from 1).
  main_id       INTEGER REFERENCES leads (id) ON DELETE CASCADE,
  position      INTEGER NOT NULL DEFAULT 0,
  -- E.164.
  phone_number  TEXT    NOT NULL,
  -- IANA name, from the number's country; '': the campaign's time zone.
  timezone      TEXT    NOT NULL,
  variables     TEXT    NOT NULL,
  status        TEXT    NOT NULL CHECK (status IN ('created', 'scheduled', 'processing', 'completed',
    'rescheduled', 'reached-max-retries', 'blacklisted')),
  call_tries    INTEGER NOT NULL DEFAULT 0,
  -- Queued, and not to be called before this; null: not queued.
  next_try_at   INTEGER,
  -- The call in progress while `processing`, afterwards the last call.
  call_id       INTEGER REFERENCES calls (id) ON DELETE SET NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX leads_by_account ON leads (account_id, id);
CREATE INDEX leads_by_campaign ON leads (campaign_id, id);
CREATE INDEX leads_by_number ON leads (account_id, phone_number);
CREATE INDEX leads_by_main ON leads (main_id, position) WHERE main_id IS NOT NULL;
CREATE INDEX leads_by_call ON leads (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX leads_queued ON leads (campaign_id, timezone, next_try_at, id)
  WHERE next_try_at IS NOT NULL;
CREATE INDEX leads_processing ON leads (campaign_id) WHERE status = 'processing';

CREATE TABLE blocked_numbers (
  account_id    INTEGER NOT NULL REFERENCES accounts (id),
  phone_number  TEXT    NOT NULL,
  reason        TEXT,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (account_id, phone_number)
) STRICT, WITHOUT ROWID;

ALTER TABLE calls ADD COLUMN campaign_id INTEGER REFERENCES campaigns (id) ON DELETE SET NULL;
ALTER TABLE calls ADD COLUMN lead_id INTEGER REFERENCES leads (id) ON DELETE SET NULL;
CREATE INDEX calls_by_campaign ON calls (campaign_id, id) WHERE campaign_id IS NOT NULL;
CREATE INDEX calls_by_lead ON calls (lead_id) WHERE lead_id IS NOT NULL;
-- Read before each call: how many calls the account has at the moment.
CREATE INDEX calls_live ON calls (account_id, id)
  WHERE status IN ('initiated', 'ringing', 'in-progress');
