-- The warm transfer on whose leg this was said; null: between assistant and customer.
ALTER TABLE call_entries ADD COLUMN transfer INTEGER;
