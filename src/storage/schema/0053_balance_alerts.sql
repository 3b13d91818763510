-- The balances at which an account is alerted, and who gets mail about it: JSON lists.
CREATE TABLE balance_alerts (
  account_id  INTEGER PRIMARY KEY REFERENCES accounts (id),
  amounts     TEXT    NOT NULL,
  emails      TEXT    NOT NULL
) STRICT;
-- The highest of those amounts below the balance: the list is read only when an entry reaches it.
-- Null: there is none.
ALTER TABLE accounts ADD COLUMN alert_micros INTEGER;

-- Alert mails, written in the transaction of the entry that made the balance low.
CREATE TABLE balance_mails (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id        INTEGER NOT NULL REFERENCES accounts (id),
  threshold_micros  INTEGER NOT NULL,
  balance_micros    INTEGER NOT NULL,
  address           TEXT    NOT NULL,
  next_at           INTEGER NOT NULL,
  created_at        INTEGER NOT NULL,
  sent_at           INTEGER
) STRICT;
CREATE INDEX balance_mails_due ON balance_mails (next_at) WHERE sent_at IS NULL;

-- Payment sessions opened for an account; what is paid in one is credited to it.
CREATE TABLE top_ups (
  session_id    TEXT    PRIMARY KEY,
  account_id    INTEGER NOT NULL REFERENCES accounts (id),
  amount_micros INTEGER NOT NULL,
  created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
