-- How many rows of a range the table has to hold: what others took out of it shows by that (docs/operations.md).

ALTER TABLE files
    ADD COLUMN expected_rows bigint,
    ADD COLUMN erased_rows bigint NOT NULL DEFAULT 0,
    ADD COLUMN lost_rows bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN files.expected_rows IS 'Rows that the table has to hold of the range; null: as many as the file has.';
COMMENT ON COLUMN files.erased_rows IS 'Rows that others deleted, and that stay gone because an operator accepted it.';
COMMENT ON COLUMN files.lost_rows IS 'Rows that the table lost and nobody had any more, as an operator accepted.';
