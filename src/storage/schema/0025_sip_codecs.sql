-- The codecs of a trunk's calls, best first, parted by commas.
ALTER TABLE sip_trunks ADD COLUMN codecs TEXT NOT NULL DEFAULT 'pcmu,pcma';
