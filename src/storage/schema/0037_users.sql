-- Members of an account, how they sign in, and the audit log. Removed members stay, because the log
-- names them.
CREATE TABLE users (
  id             INTEGER PRIMARY KEY,
  account_id     INTEGER NOT NULL REFERENCES accounts (id),
  email          TEXT    NOT NULL,
  name           TEXT    NOT NULL,
  role           TEXT    NOT NULL
    CHECK (role IN ('owner', 'admin', 'builder', 'operator', 'viewer')),
  -- With its parameters; null: the member signs in elsewhere.
  password_hash  TEXT,
  -- The member's identity at the OpenID provider.
  issuer         TEXT,
  subject        TEXT,
  seen_at        INTEGER,
  created_at     INTEGER NOT NULL,
  removed_at     INTEGER
) STRICT;
CREATE UNIQUE INDEX users_by_email ON users (email) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX users_by_subject ON users (issuer, subject)
  WHERE removed_at IS NULL AND subject IS NOT NULL;
CREATE INDEX users_by_account ON users (account_id);

-- A link that makes a member, or with a user gives one a new password; used once.
CREATE TABLE invitations (
  id          INTEGER PRIMARY KEY,
  account_id  INTEGER NOT NULL REFERENCES accounts (id),
  user_id     INTEGER REFERENCES users (id),
  email       TEXT    NOT NULL,
  role        TEXT    NOT NULL,
  token_hash  TEXT    NOT NULL UNIQUE,
  -- The id and name of an author.
  invited_by    TEXT  NOT NULL,
  inviter_name  TEXT  NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  -- When it was used or withdrawn.
  closed_at   INTEGER
) STRICT;
CREATE INDEX invitations_open ON invitations (account_id, id) WHERE closed_at IS NULL;
CREATE INDEX invitations_by_email ON invitations (email) WHERE closed_at IS NULL;

CREATE TABLE user_sessions (
  id          INTEGER PRIMARY KEY,
  account_id  INTEGER NOT NULL REFERENCES accounts (id),
  user_id     INTEGER NOT NULL REFERENCES users (id),
  token_hash  TEXT    NOT NULL UNIQUE,
  address     TEXT    NOT NULL,
  agent       TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX user_sessions_by_user ON user_sessions (user_id, id);

CREATE TABLE audit_log (
  account_id   INTEGER NOT NULL REFERENCES accounts (id),
  number       INTEGER NOT NULL,
  actor_kind   TEXT    NOT NULL,
  actor_id     TEXT    NOT NULL,
  actor_name   TEXT    NOT NULL,
  action       TEXT    NOT NULL,
  object_type  TEXT,
  object_id    TEXT,
  details      TEXT    NOT NULL,
  address      TEXT,
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (account_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_log_by_age ON audit_log (created_at);
ALTER TABLE accounts ADD COLUMN audit_number INTEGER NOT NULL DEFAULT 0;

-- The most a key may do; existing keys may do everything. Null: made at the command line.
ALTER TABLE api_keys ADD COLUMN role TEXT NOT NULL DEFAULT 'owner';
ALTER TABLE api_keys ADD COLUMN made_by TEXT;
