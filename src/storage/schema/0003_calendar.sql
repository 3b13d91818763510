CREATE TABLE calendars (
  assistant_id    INTEGER PRIMARY KEY REFERENCES assistants (id),
  account_id      INTEGER NOT NULL,
  -- Anyone who knows it may read the feed.
  feed_uuid       TEXT    NOT NULL UNIQUE,
  time_zone       TEXT,
  slot_minutes    INTEGER NOT NULL,
  buffer_minutes  INTEGER NOT NULL,
  lead_minutes    INTEGER NOT NULL,
  days_ahead      INTEGER NOT NULL,
  working_hours   TEXT    NOT NULL,
  updated_at      INTEGER NOT NULL
) STRICT;

CREATE TABLE appointments (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id    INTEGER NOT NULL,
  assistant_id  INTEGER NOT NULL REFERENCES assistants (id),
  uuid          TEXT    NOT NULL UNIQUE,
  -- The key of the request that booked it: a repeated request books once.
  booking_key   TEXT    NOT NULL,
  starts_at     INTEGER NOT NULL,
  ends_at       INTEGER NOT NULL,
  name          TEXT    NOT NULL,
  email         TEXT,
  phone         TEXT,
  notes         TEXT,
  state         TEXT    NOT NULL CHECK (state IN ('booked', 'cancelled')),
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  UNIQUE (assistant_id, booking_key)
) STRICT;
CREATE INDEX appointments_by_time ON appointments (assistant_id, starts_at) WHERE state = 'booked';
