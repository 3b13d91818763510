-- Whose a telephone number is, by the operator's word, where several accounts say it is theirs.
CREATE TABLE number_approvals (
  -- As trunks name it: E.164 or an extension.
  phone_number TEXT    PRIMARY KEY,
  account_id   INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  approved_at  INTEGER NOT NULL
) STRICT;
