-- Whether a recording that waits is still some call's, and whose one is that has come of age.
CREATE INDEX calls_by_recording ON calls (recording_file) WHERE recording_file IS NOT NULL;
