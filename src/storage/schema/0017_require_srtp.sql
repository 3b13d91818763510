-- Whether a trunk's calls must be encrypted.
ALTER TABLE sip_trunks ADD COLUMN require_srtp INTEGER NOT NULL DEFAULT 0;
