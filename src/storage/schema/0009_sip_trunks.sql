-- SIP trunks: how calls of a number of type 'sip' reach the account's own telephone system. And how
-- fast an account may dial.

-- A trunk is part of its number: it is deleted with it, and has the number's id.
CREATE TABLE sip_trunks (
  phone_number_id    INTEGER PRIMARY KEY REFERENCES phone_numbers (id) ON DELETE CASCADE,
  -- Binds the sealed password to the row.
  uuid               TEXT    NOT NULL UNIQUE,
  trunk_type         TEXT    NOT NULL CHECK (trunk_type IN ('extension', 'number')),
  username           TEXT    NOT NULL,
  password           TEXT    NOT NULL,
  -- Host name or IP address, in lower case.
  address            TEXT    NOT NULL,
  -- Null: from DNS (SRV), else the transport's default.
  port               INTEGER,
  transport          TEXT    NOT NULL CHECK (transport IN ('udp', 'tcp', 'tls')),
  calling_format     TEXT    NOT NULL CHECK (calling_format IN ('+e164', 'e164', 'national')),
  inbound_auth       TEXT    NOT NULL CHECK (inbound_auth IN ('auth', 'ip')),
  -- Addresses and networks, as JSON; null unless inbound_auth is 'ip'.
  allowed_networks   TEXT,
  outbound_proxy     INTEGER NOT NULL,
  inbound_trunk_id   TEXT    NOT NULL UNIQUE,
  outbound_trunk_id  TEXT    NOT NULL UNIQUE,
  updated_at         INTEGER NOT NULL,
  CHECK ((inbound_auth = 'ip') = (allowed_networks IS NOT NULL))
) STRICT;

-- The bucket of src/features/phone-numbers/dial-guard.ts. In a table, so that neither a restart nor deleting
-- calls fills it.
CREATE TABLE dial_rates (
  account_id  INTEGER PRIMARY KEY REFERENCES accounts (id),
  spent_until INTEGER NOT NULL
) STRICT;
