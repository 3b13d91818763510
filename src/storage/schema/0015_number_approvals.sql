-- Which account a telephone number belongs to, approved by the operator, where several claim it.
CREATE TABLE number_approvals (
  -- As trunks name it: E.164 or an extension.
  phone_number TEXT    PRIMARY KEY,
  account_id   INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  approved_at  INTEGER NOT NULL
) STRICT;
