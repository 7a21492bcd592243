-- The digest of a file's records, where rewrites of the file don't reach it (docs/digest.md).

ALTER TABLE files
    ADD COLUMN digest text CHECK (digest ~ '^[0-9a-f]{32}$'),
    ADD COLUMN digest_algorithm text,
    ADD CHECK ((digest IS NULL) = (digest_algorithm IS NULL));
COMMENT ON COLUMN files.digest IS 'Of the range''s records, by digest_algorithm; null without a file, or from before there were digests.';
