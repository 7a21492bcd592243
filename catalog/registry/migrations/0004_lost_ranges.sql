-- Offsets that a log lost before they were archived, recorded because an operator accepted it (--accept-gap).

ALTER TABLE files ADD COLUMN lost boolean NOT NULL DEFAULT false, ADD CHECK (NOT lost OR path IS NULL);
COMMENT ON COLUMN files.lost IS 'The log no longer had these offsets when their turn came; they are in no file.';
