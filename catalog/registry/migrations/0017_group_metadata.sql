-- What clients commit beside an offset may hold any character, NUL among them, which text can't.

ALTER TABLE group_offsets
    ALTER COLUMN metadata DROP DEFAULT,
    ALTER COLUMN metadata TYPE bytea USING convert_to(metadata, 'UTF8'),
    ALTER COLUMN metadata SET DEFAULT ''::bytea;
COMMENT ON COLUMN group_offsets.metadata IS 'UTF-8';
