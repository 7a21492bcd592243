-- Ranges and files are many to many (docs/adr/0034): a row is of one range in one file.

ALTER TABLE files
    ADD COLUMN range_id text,
    ADD COLUMN part integer NOT NULL DEFAULT 0,
    ADD COLUMN parts integer NOT NULL DEFAULT 1,
    ADD COLUMN replaced_by text,
    ADD COLUMN retired_rows bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT files_part_check CHECK (part >= 0 AND part < parts AND (part = 0) = (range_id IS NULL)),
    ADD CONSTRAINT files_parts_check CHECK (parts = 1 OR path IS NOT NULL),
    ADD CONSTRAINT files_replaced_by_check CHECK (replaced_by IS NULL OR state = 'replaced');
COMMENT ON COLUMN files.range_id IS 'The range that the row is a further file of: the id of its first row; null in the first.';
COMMENT ON COLUMN files.part IS 'Which of the range''s files it is, from 0.';
COMMENT ON COLUMN files.parts IS 'In how many files the range''s records are; the range is whole only with all of them.';
COMMENT ON COLUMN files.rows IS 'Records of this range in this file; the file may hold those of other ranges, too.';
COMMENT ON COLUMN files.digest IS 'Of the range''s records in this file, by digest_algorithm; null without a file, or from before there were digests.';
COMMENT ON COLUMN files.size_bytes IS 'Of the file; 0 in further rows of a file that several ranges share.';
COMMENT ON COLUMN files.replaced_by IS 'The commit that replaced the row; the successors are that commit''s rows with offsets in common.';
COMMENT ON COLUMN files.retired_rows IS 'Rows that retention took out of the table: they are neither lost nor erased.';
UPDATE files SET replaced_by = substring(reason FROM 'commit ([0-9A-Za-z]+)') WHERE state = 'replaced';

-- The fence in the last resort: two accepted ranges of a partition never start at one offset, whatever their files.
DROP INDEX files_accepted;
CREATE UNIQUE INDEX files_accepted ON files (topic_id, partition, start_offset, part) INCLUDE (end_offset)
    WHERE state IN ('uploaded', 'committed');
CREATE INDEX files_parts ON files (range_id) WHERE range_id IS NOT NULL;
DROP INDEX files_counts;
CREATE INDEX files_counts ON files (topic_id, state) INCLUDE (part, rows, size_bytes);
