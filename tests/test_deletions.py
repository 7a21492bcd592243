"""Objects are deleted only through `catalog.iceberg.deletion_gate`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("archiver", "catalog", "schema_mapping")

DELETING: Final = frozenset(
    {
        "delete",
        "delete_all",
        "delete_dir",
        "delete_dir_contents",
        "delete_file",
        "delete_object",
        "delete_objects",
        "delete_unchanged",
        "drop_table",
        "purge_table",
        "rm",
        "rm_file",
        "rmdir",
        "rmtree",
        "unlink",
        "_clean_all_uncommitted",
        "_cleanup_uncommitted",
        "expire_snapshots",
    }
)
"""Names by which objects or files are deleted, in the libraries in use and in our code."""

GATE: Final = {
    "catalog/iceberg/deletion_gate.py": ["delete", "io.delete"],
    # wrappers of a FileIO: the gate calls them
    "catalog/iceberg/file_io.py": ["super().delete", "writer.delete"],
    "catalog/iceberg/late_file_io.py": ["self._opened().delete"],
    "catalog/iceberg/s3_writer.py": ["obstore.delete"],
    "catalog/iceberg/whole_files.py": ["self._io.delete"],
}
THROUGH_THE_GATE: Final = {
    "archiver/audit/folder.py": ["self.objects.delete"],
    "archiver/index/builder.py": ["self.store.delete_all"],
    "archiver/index/merging.py": ["self.store.delete"],
    "archiver/index/removal.py": ["self.store.delete", "self.store.delete_all"],
    "archiver/index/store.py": ["self.delete", "self.delete_all", "self.objects.delete"],
    "archiver/setup/table_checks.py": ["store.delete", "store.delete", "store.delete"],
    "archiver/storage/journal_sums.py": ["self.commits.objects.delete_unchanged"],
    "archiver/storage/metadata_folder.py": ["self.objects.delete"],
    "archiver/storage/objects.py": ["deletion_gate.delete", "deletion_gate.delete"],
    "archiver/upkeep/erase/metadata.py": ["folder.delete"],
    "archiver/upkeep/metadata.py": ["folder.delete"],
    "archiver/upkeep/orphans/removal.py": ["self._objects.delete"],
    "catalog/iceberg/append.py": ["delete_all", "delete_all"],
    "catalog/iceberg/housekeeping.py": ["delete_all", "delete_all"],
    "catalog/iceberg/table_catalog.py": ["delete_all"],
}
"""Each of these calls gives a permit."""
PERMITS: Final = {
    "archiver/audit/folder.py": ["OwnFolder"],
    "archiver/index/store.py": ["OwnFolder"],
    "archiver/setup/table_checks.py": ["OwnFolder", "OwnFolder", "OwnFolder"],
    "archiver/storage/journal_sums.py": ["OwnFolder"],
    "archiver/storage/metadata_folder.py": ["OwnFolder"],
    "archiver/upkeep/orphans/search.py": ["NeverLanded", "TableObjects.of"],
    "archiver/upkeep/removal/purge.py": ["TableObjects.of"],
    "catalog/iceberg/append.py": ["NeverLanded", "NeverLanded"],
    "catalog/iceberg/housekeeping.py": ["TableObjects.of", "TableObjects.of"],
    "catalog/iceberg/table_catalog.py": ["TableObjects"],
}
"""Where permits are made. Whoever adds one shows that no other table can have what it permits to delete."""
NO_OBJECT_OF_A_TABLE: Final = {
    # files on this machine: spools, caches, locks, write-ahead logs, the embedded stack, progress of a verification
    "archiver/archive/plan_cache.py": 3,
    "archiver/cli/demo.py": 1,
    "archiver/engine/class_archive.py": 3,
    "archiver/intake/disk.py": 1,
    "archiver/local/maven.py": 3,
    "archiver/local/postgres.py": 3,
    "archiver/local/postgres_binaries.py": 1,
    "archiver/local/seaweedfs.py": 1,
    "archiver/local/state.py": 1,
    "archiver/replay/output_file.py": 1,
    "archiver/setup/machine_checks.py": 1,
    "archiver/setup/write_config.py": 1,
    "archiver/storage/spool.py": 2,
    "archiver/storage/spool_file.py": 1,
    "archiver/upkeep/erase/local_copies.py": 1,
    "archiver/upkeep/verify/state.py": 1,
    # rows of the registry
    "archiver/cli/groups.py": 1,
    "archiver/serve/kafka/group_descriptions.py": 1,
    "archiver/serve/kafka/offset_requests.py": 1,
    "archiver/serve/nodes/fenced_offsets.py": 1,
    "catalog/registry/registry.py": 1,
    # a table without its files
    "catalog/iceberg/scratch_table.py": 1,
}


def parsed() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def named(tree: ast.Module, names: frozenset[str]) -> list[str]:
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in names]
    called = [
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]
    return sorted(ast.unparse(node) for node in (*attributes, *called))


def test_every_deletion_is_known() -> None:
    deletions = {path: named(tree, DELETING) for path, tree in parsed()}
    deletions = {path: calls for path, calls in deletions.items() if calls and path not in NO_OBJECT_OF_A_TABLE}
    assert deletions == GATE | THROUGH_THE_GATE


def test_other_deletions_are_counted() -> None:
    counts = {path: len(named(tree, DELETING)) for path, tree in parsed() if path in NO_OBJECT_OF_A_TABLE}
    assert counts == NO_OBJECT_OF_A_TABLE


def test_every_permit_is_known() -> None:
    kinds = frozenset({"TableObjects", "NeverLanded", "OwnFolder"})
    permits: dict[str, list[str]] = {}
    for path, tree in parsed():
        calls = [ast.unparse(part.func) for part in ast.walk(tree) if isinstance(part, ast.Call)]
        made = sorted(call for call in calls if call.split(".")[0] in kinds)
        if made and path not in GATE:
            permits[path] = made
    assert permits == PERMITS


def test_no_file_io_deletes_beside_the_gate() -> None:
    """pyarrow's file systems delete by other names, too."""
    names = frozenset({"DeleteObject", "DeleteObjects", "delete_root_dir_contents", "remove_orphan_files"})
    assert {path: calls for path, tree in parsed() if (calls := named(tree, names))} == {}
