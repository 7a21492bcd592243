"""Several servers as one cluster: who is there, who leads a partition, and who coordinates a group. Knows no protocol.

- `members`: the nodes of a view, and how partitions and groups are spread over them
- `membership`: this node's heartbeats and its lease; takes in views
- `claims`: the groups that this node coordinates, each with its fence in the registry
- `turns`: what is kept of a group, in the order in which it was asked for
- `joint_commits`: commits of a group that wait for each other, kept together
- `node_store`: the calls of both, answered by the registry
- `fenced_offsets`: offsets of groups that only their coordinator commits
- `cluster_ids`: the id that nodes of one catalog have in common
- `cluster`: all of it, as answers to requests see it
"""

from archiver.serve.nodes.claims import Need, Standing
from archiver.serve.nodes.cluster import Cluster
from archiver.serve.nodes.cluster_ids import cluster_id_of
from archiver.serve.nodes.fenced_offsets import FencedOffsets
from archiver.serve.nodes.joint_commits import JointCommits
from archiver.serve.nodes.members import Members, Node
from archiver.serve.nodes.membership import Beats
from archiver.serve.nodes.node_store import NodeStore, RegistryNodes

__all__ = [
    "Beats",
    "Cluster",
    "FencedOffsets",
    "JointCommits",
    "Members",
    "Need",
    "Node",
    "NodeStore",
    "RegistryNodes",
    "Standing",
    "cluster_id_of",
]
