-- Which values the columns of a file have: searches leave out files without opening them (docs/adr/0099).

CREATE TABLE file_values (
    file_id   text      PRIMARY KEY REFERENCES files ON DELETE CASCADE,
    topic_id  integer   NOT NULL REFERENCES topics,
    path      text      NOT NULL,
    columns   integer[] NOT NULL,
    terms     bigint[]  NOT NULL
);
CREATE UNIQUE INDEX file_values_path ON file_values (topic_id, path);
COMMENT ON TABLE file_values IS 'Advisory: a file without a row, or a column that the row does not list, may have any value. Rows go with the rows of files.';
COMMENT ON COLUMN file_values.columns IS 'Field ids of the columns all of whose values are in terms.';
COMMENT ON COLUMN file_values.terms IS 'A hash of each value and its column: no value itself.';
