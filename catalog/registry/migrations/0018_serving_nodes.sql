-- The nodes of `archiver serve kafka`, and which of them coordinates a group. All times are this database's.

CREATE TABLE serve_clusters (
    cluster_id text   PRIMARY KEY,
    view       bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN serve_clusters.view IS 'Counts each node that comes or goes. A number stands for one set of nodes.';

CREATE TABLE serve_nodes (
    cluster_id   text        NOT NULL REFERENCES serve_clusters,
    node_id      integer     NOT NULL CHECK (node_id >= 0),
    host         text        NOT NULL,
    port         integer     NOT NULL,
    incarnation  uuid        NOT NULL,
    is_live      boolean     NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    lost_after   interval    NOT NULL,
    seen_view    bigint      NOT NULL,
    PRIMARY KEY (cluster_id, node_id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN serve_nodes.incarnation IS 'One run of the node. Another run with its id ends this one.';
COMMENT ON COLUMN serve_nodes.seen_view IS 'The node coordinates no group that this view gives to another one.';

CREATE TABLE group_coordinators (
    cluster_id text        NOT NULL,
    group_id   text        NOT NULL,
    epoch      bigint      NOT NULL,
    node_id    integer     NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (cluster_id, group_id)
);
COMMENT ON COLUMN group_coordinators.epoch IS 'The view in which the node took the group. Commits that come with another one are refused.';
