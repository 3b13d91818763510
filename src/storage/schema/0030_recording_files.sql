-- Finds whether a waiting recording belongs to a call, and which call an expired one belongs to.
CREATE INDEX calls_by_recording ON calls (recording_file) WHERE recording_file IS NOT NULL;
