-- Trunks whose sound has to be encrypted.
ALTER TABLE sip_trunks ADD COLUMN require_srtp INTEGER NOT NULL DEFAULT 0;
