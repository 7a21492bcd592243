"""Several servers as one cluster: nodes, leaders of partitions, coordinators of groups. Knows no protocol.

- `members`: the nodes of a view, and how partitions and groups are spread over them
- `membership`: this node's heartbeats, lease and views
- `claims`: the groups that this node coordinates, each fenced in the registry
- `duty`: the claim and the turn that work on a group gets
- `turns`: the order of a group's writes
- `joint_commits`: waiting commits of a group, kept together
- `node_store`: the registry calls of membership and claims
- `fenced_offsets`: offsets that only the group's coordinator commits
- `cluster_ids`: the id that nodes of one catalog share
- `cluster`: all of it, for the handlers of requests
"""

from archiver.serve.nodes.claims import GroupStanding, Need
from archiver.serve.nodes.cluster import NodeCluster
from archiver.serve.nodes.cluster_ids import cluster_id_of
from archiver.serve.nodes.duty import GroupDuty
from archiver.serve.nodes.fenced_offsets import FencedOffsets
from archiver.serve.nodes.joint_commits import JointCommits
from archiver.serve.nodes.members import Members, Node, NodeAddress
from archiver.serve.nodes.membership import Beats
from archiver.serve.nodes.node_store import NodeStore, RegistryNodes

__all__ = [
    "Beats",
    "FencedOffsets",
    "GroupDuty",
    "GroupStanding",
    "JointCommits",
    "Members",
    "Need",
    "Node",
    "NodeAddress",
    "NodeCluster",
    "NodeStore",
    "RegistryNodes",
    "cluster_id_of",
]
