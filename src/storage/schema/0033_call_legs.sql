-- The warm transfer on whose leg something was said; null: between assistant and customer.
ALTER TABLE call_entries ADD COLUMN transfer INTEGER;
