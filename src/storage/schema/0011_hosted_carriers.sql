-- The hosted carrier account over which a number in the operator's stock is reached, by name; null:
-- none.
ALTER TABLE number_inventory ADD COLUMN carrier TEXT;
