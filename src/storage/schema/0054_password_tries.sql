-- Password tries, by hashes of the user and of the address, for as long as they count.
CREATE TABLE password_tries (
  id        INTEGER PRIMARY KEY,
  who_hash  TEXT    NOT NULL,
  tried_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX password_tries_by_who ON password_tries (who_hash, tried_at);
CREATE INDEX password_tries_by_time ON password_tries (tried_at);
