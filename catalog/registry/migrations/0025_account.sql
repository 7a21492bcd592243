-- What a table must have, by partition and offset, whatever files the rows are in (docs/adr/0072).

CREATE TABLE account (
    topic_id       integer  NOT NULL REFERENCES topics,
    partition      integer  NOT NULL,
    first_offset   bigint   NOT NULL,
    last_offset    bigint   NOT NULL CHECK (last_offset >= first_offset),
    expected_rows  bigint   NOT NULL CHECK (expected_rows >= 0),
    digest         text     CHECK (digest ~ '^[0-9a-f]{32}$'),
    erased_rows    bigint   NOT NULL DEFAULT 0,
    removed_rows   bigint   NOT NULL DEFAULT 0,
    lost_rows      bigint   NOT NULL DEFAULT 0,
    retired_rows   bigint   NOT NULL DEFAULT 0,
    is_gap         boolean  NOT NULL DEFAULT false,
    is_unknown     boolean  NOT NULL DEFAULT false,
    commit_id      text,
    PRIMARY KEY (topic_id, partition, first_offset)
);
COMMENT ON TABLE account IS 'Intervals of offsets, first and last inclusive: which rows the table must have, and why others are gone.';
COMMENT ON COLUMN account.digest IS 'Of the expected rows; null if it is not known.';
COMMENT ON COLUMN account.erased_rows IS 'Records that were erased on purpose.';
COMMENT ON COLUMN account.removed_rows IS 'Records that others removed, as an operator accepted.';
COMMENT ON COLUMN account.is_gap IS 'The log no longer had these offsets when they were to be archived.';
COMMENT ON COLUMN account.is_unknown IS 'Made of rows that neither journal nor footers tell of: more records may have been archived.';

-- Digests are numbers modulo 2^128 in hexadecimal digits, and add up. A range with more rows than it expects has some
-- that are missing or accepted to be gone: then the digest of the expected ones is not known.
INSERT INTO account (topic_id, partition, first_offset, last_offset, expected_rows, digest, erased_rows, removed_rows,
                     lost_rows, retired_rows, is_gap, commit_id)
SELECT topic_id, partition, start_offset, end_offset - 1, expected,
       CASE
           WHEN expected = 0 THEN repeat('0', 32)
           WHEN expected <> held OR NOT has_digests THEN NULL
           ELSE lpad(to_hex((div(total, 79228162514264337593543950336) % 4294967296)::bigint), 8, '0')
             || lpad(to_hex((div(total, 18446744073709551616) % 4294967296)::bigint), 8, '0')
             || lpad(to_hex((div(total, 4294967296) % 4294967296)::bigint), 8, '0')
             || lpad(to_hex((total % 4294967296)::bigint), 8, '0')
       END,
       CASE WHEN was_erased THEN gone ELSE 0 END, CASE WHEN was_erased THEN 0 ELSE gone END, lost_rows, retired_rows,
       is_gap, commit_id
FROM (
    SELECT topic_id, partition, start_offset, end_offset,
           sum(coalesce(expected_rows, rows))::bigint AS expected, sum(rows)::bigint AS held,
           bool_and(path IS NULL OR digest IS NOT NULL) AS has_digests,
           coalesce(sum(
               ('x' || lpad(substr(digest, 1, 8), 16, '0'))::bit(64)::bigint::numeric * 79228162514264337593543950336
             + ('x' || lpad(substr(digest, 9, 8), 16, '0'))::bit(64)::bigint::numeric * 18446744073709551616
             + ('x' || lpad(substr(digest, 17, 8), 16, '0'))::bit(64)::bigint::numeric * 4294967296
             + ('x' || lpad(substr(digest, 25, 8), 16, '0'))::bit(64)::bigint::numeric
           ), 0) AS total,
           sum(erased_rows)::bigint AS gone, sum(lost_rows)::bigint AS lost_rows,
           sum(retired_rows)::bigint AS retired_rows, bool_or(lost) AS is_gap,
           (array_agg(commit_id ORDER BY part))[1] AS commit_id,
           EXISTS (SELECT FROM erased_offsets AS erased WHERE erased.topic_id = files.topic_id
                   AND erased.partition = files.partition AND erased.start_offset < files.end_offset
                   AND erased.end_offset > files.start_offset) AS was_erased
    FROM files WHERE state = 'committed'
    GROUP BY topic_id, partition, start_offset, end_offset
) AS ranges;
