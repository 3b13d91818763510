-- Phone numbers as subscriptions, their orders, numbers to be given back to their provider, and the
-- operator's own stock. The states are those of src/features/phone-numbers/billing.ts.

ALTER TABLE phone_numbers ADD COLUMN nickname TEXT;
ALTER TABLE phone_numbers ADD COLUMN sms_capable INTEGER NOT NULL DEFAULT 0;
ALTER TABLE phone_numbers ADD COLUMN region TEXT;
-- Null: the account's own (SIP trunks, caller IDs); never billed.
ALTER TABLE phone_numbers ADD COLUMN provider TEXT;
ALTER TABLE phone_numbers ADD COLUMN provider_sid TEXT;
ALTER TABLE phone_numbers ADD COLUMN monthly_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE phone_numbers ADD COLUMN status TEXT NOT NULL DEFAULT 'active'
  CHECK (status IN ('active', 'grace', 'suspended'));
ALTER TABLE phone_numbers ADD COLUMN paid_until INTEGER;
-- While unpaid: when the next, worse state begins.
ALTER TABLE phone_numbers ADD COLUMN grace_until INTEGER;
-- When its owner released it; it stays until paid_until.
ALTER TABLE phone_numbers ADD COLUMN released_at INTEGER;
-- When the clock checks it next.
ALTER TABLE phone_numbers ADD COLUMN due_at INTEGER;
CREATE INDEX phone_numbers_due ON phone_numbers (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX phone_numbers_provided ON phone_numbers (phone_number)
  WHERE provider IS NOT NULL;

CREATE TABLE number_purchases (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  -- Also its name at the provider, by which it is found again after a crash.
  uuid             TEXT    NOT NULL UNIQUE,
  account_id       INTEGER NOT NULL REFERENCES accounts (id),
  idempotency_key  TEXT,
  phone_number     TEXT    NOT NULL,
  country_code     TEXT    NOT NULL,
  sms_capable      INTEGER NOT NULL,
  region           TEXT,
  provider         TEXT    NOT NULL,
  price_micros     INTEGER NOT NULL,
  -- 'ordered': money reserved, the provider's part open; 'lost': refused and nothing charged, but
  -- the provider may still deliver, and then gets the number back.
  state            TEXT    NOT NULL CHECK (state IN ('ordered', 'completed', 'lost', 'failed')),
  -- What the client was told or will be told.
  status           INTEGER,
  error            TEXT,
  -- No foreign key: the purchase is remembered when the number is gone.
  phone_number_id  INTEGER,
  created_at       INTEGER NOT NULL,
  finished_at      INTEGER
) STRICT;
CREATE UNIQUE INDEX number_purchases_by_key ON number_purchases (account_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
-- A number cannot have two open orders.
CREATE UNIQUE INDEX number_purchases_open ON number_purchases (phone_number)
  WHERE state IN ('ordered', 'lost');

-- Numbers nobody has any more, until their provider has taken them back.
CREATE TABLE number_returns (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  provider      TEXT    NOT NULL,
  provider_sid  TEXT    NOT NULL,
  phone_number  TEXT    NOT NULL,
  created_at    INTEGER NOT NULL
) STRICT;

-- Numbers the operator has provided.
CREATE TABLE number_inventory (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  phone_number   TEXT    NOT NULL UNIQUE,
  country_code   TEXT    NOT NULL,
  sms_capable    INTEGER NOT NULL,
  -- Per month; null: the price of numbers in that country.
  price_micros   INTEGER,
  -- The purchase it belongs to; null: free.
  purchase_uuid  TEXT    UNIQUE,
  created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX number_inventory_free ON number_inventory (country_code, phone_number)
  WHERE purchase_uuid IS NULL;
