-- Spending, counted from the ledger by quarter of an hour, so that the days of any time zone are a
-- few rows; 0 and '' where an entry has no such dimension.
CREATE TABLE costs (
  account_id    INTEGER NOT NULL REFERENCES accounts (id),
  at            INTEGER NOT NULL,
  kind          TEXT    NOT NULL,
  channel       TEXT    NOT NULL,
  assistant_id  INTEGER NOT NULL,
  campaign_id   INTEGER NOT NULL,
  model_id      INTEGER NOT NULL,
  micros        INTEGER NOT NULL,
  entries       INTEGER NOT NULL,
  PRIMARY KEY (account_id, at, kind, channel, assistant_id, campaign_id, model_id)
) STRICT, WITHOUT ROWID;

-- The newest entry of each account's ledger that is counted.
CREATE TABLE costs_counted (
  account_id  INTEGER PRIMARY KEY REFERENCES accounts (id),
  number      INTEGER NOT NULL
) STRICT;
