-- Offsets belong to a cluster of `archiver serve kafka`, as the claims on their groups do. Those that were committed
-- before name no cluster: the one that claims their group next takes them.

ALTER TABLE group_offsets ADD COLUMN cluster_id text NOT NULL DEFAULT '';
ALTER TABLE group_offsets ALTER COLUMN cluster_id DROP DEFAULT;
ALTER TABLE group_offsets DROP CONSTRAINT group_offsets_pkey;
ALTER TABLE group_offsets ADD PRIMARY KEY (cluster_id, group_id, topic, partition);
COMMENT ON COLUMN group_offsets.cluster_id IS 'Empty for offsets that no cluster has taken yet.';

ALTER TABLE group_coordinators ADD COLUMN used_at timestamptz NOT NULL DEFAULT now();
COMMENT ON COLUMN group_coordinators.used_at IS 'The group had members then, or was claimed for the first time.';
