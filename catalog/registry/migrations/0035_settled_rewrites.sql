-- Settled rewrites keep their names only: the bounds of their files may have keys and values that an erasure must remove.

UPDATE metadata SET value = '{}' WHERE key = 'rewrite' AND deleted;
