-- The codecs of a trunk's calls, best first, separated by commas.
ALTER TABLE sip_trunks ADD COLUMN codecs TEXT NOT NULL DEFAULT 'pcmu,pcma';
