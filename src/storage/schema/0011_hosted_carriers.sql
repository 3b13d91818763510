-- Over whose line a number the operator brought along is reached: the name of an account at a
-- hosted carrier; null: over none.
ALTER TABLE number_inventory ADD COLUMN carrier TEXT;
