-- Ranges that were rejected only because an object wasn't in the store as it was staged: they may come back.

ALTER TABLE files
    ADD COLUMN missing boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT files_missing_check CHECK (NOT missing OR state = 'rejected');
COMMENT ON COLUMN files.missing IS 'Rejected because its object, or one before it, was gone or of another size; taken up again where it is back and its offsets are in no other range.';
UPDATE files SET missing = true
    WHERE state = 'rejected'
    AND (reason LIKE 'can''t look at the object: %' OR reason LIKE 'the object''s size is not the staged file''s%');
CREATE INDEX files_missing ON files (topic_id, partition, start_offset) WHERE missing;
