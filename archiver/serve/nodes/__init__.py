"""Several servers as one cluster."""

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
