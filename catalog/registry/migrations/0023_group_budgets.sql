-- How much a principal's groups keep here, so that nobody fills the database with offsets of groups that it makes up.

ALTER TABLE group_coordinators
    ADD COLUMN owner text NOT NULL DEFAULT '',
    ADD COLUMN offset_bytes bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN group_coordinators.owner IS 'Whose commit made the offsets of the group grow last; empty for offsets from before this column. For anonymous clients, with their address.';
COMMENT ON COLUMN group_coordinators.offset_bytes IS 'About what the offsets of the group take in group_offsets. 0 while they have no owner.';

CREATE INDEX group_coordinators_by_owner ON group_coordinators (cluster_id, owner) WHERE owner <> '';
