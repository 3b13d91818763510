-- Where the customer's speech was understood; null: never answered, or older than this column.
ALTER TABLE calls ADD COLUMN hearing TEXT;
-- Why a call failed, in words for its owner; null: it did not.
ALTER TABLE calls ADD COLUMN failure_reason TEXT;
