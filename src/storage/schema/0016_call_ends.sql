-- Where the customer's speech was understood; null: never answered, or older than this column.
ALTER TABLE calls ADD COLUMN hearing TEXT;
-- Why a call came to nothing, in words for its owner; null: nothing failed.
ALTER TABLE calls ADD COLUMN failure_reason TEXT;
