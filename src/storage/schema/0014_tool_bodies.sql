-- How a tool's parameters are encoded, and what is always sent with them: sealed, bound to the
-- uuid; empty where there is nothing.
ALTER TABLE tools ADD COLUMN body_format TEXT NOT NULL DEFAULT 'json'
  CHECK (body_format IN ('json', 'form'));
ALTER TABLE tools ADD COLUMN static_fields TEXT NOT NULL DEFAULT '';
