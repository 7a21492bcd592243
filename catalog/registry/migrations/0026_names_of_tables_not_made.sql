-- A catalog may refuse a topic's first table name. The name is taken only once its table was made.

ALTER TABLE topics DROP CONSTRAINT topics_table_name_key;
CREATE UNIQUE INDEX topics_tables_made ON topics (table_name) WHERE table_uuid IS NOT NULL;
