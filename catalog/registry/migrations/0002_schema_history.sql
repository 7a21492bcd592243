-- What each schema version changed, and the comments that columns carry.

ALTER TABLE schema_versions ADD COLUMN changes json NOT NULL DEFAULT '[]';
COMMENT ON COLUMN schema_versions.changes IS 'What the version did to the columns, as decided when it was made.';

ALTER TABLE field_ids ADD COLUMN doc text;
COMMENT ON COLUMN field_ids.doc IS 'The field''s comment in the .proto of the version that last changed the columns.';
