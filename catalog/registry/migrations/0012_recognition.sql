-- How well the schema fitted a file's keys and values (docs/operations.md).

ALTER TABLE files ADD COLUMN recognition jsonb;
COMMENT ON COLUMN files.recognition IS 'Counts of the file by key and value: decoded, failed, kept raw, with unknown fields; null where nothing was counted, and in further rows of a file that several ranges share.';
