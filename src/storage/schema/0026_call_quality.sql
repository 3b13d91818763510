-- How the sound of a call came through: jitter, loss, delay and what follows from them (JSON).
ALTER TABLE calls ADD COLUMN quality TEXT;
