-- Who understood the customer of a call; null: it was never answered, or before this was kept.
ALTER TABLE calls ADD COLUMN hearing TEXT;
-- Why a call came to nothing, in words for its owner; null: nothing failed.
ALTER TABLE calls ADD COLUMN failure_reason TEXT;
