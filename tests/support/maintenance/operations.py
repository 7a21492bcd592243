"""Other engines' operations: statements with `{table}`, `{first}`, `{second}` and `{third}` snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

SPARK: Final = "Spark"
TRINO: Final = "Trino"
ROWS: Final = 51
"""The archived rows of each partition before an operation."""

Gone: TypeAlias = Callable[[int, int], bool]


class Effect(StrEnum):
    KEEPS = "keeps all rows"
    REMOVES = "removes rows"
    ALTERS = "changes or doubles rows"
    SETS_BACK = "sets the table back"
    UPGRADES = "upgrades the format"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`gone` says which rows it removes; `replay` is `identical` or an error's name.

    `is_flat` needs a top-level partition source.
    """

    name: str
    engine: str
    effect: Effect
    statements: tuple[str, ...]
    gone: Gone = lambda _partition, _offset: False
    replay: str = "identical"
    beside: bool = False
    is_flat: bool = False

    @property
    def id(self) -> str:
        return f"{self.engine}, {self.name}{', beside an archiver' if self.beside else ''}"


def _some(partition: int, offset: int) -> bool:
    return partition == 1 and offset % 5 == 2 and offset < ROWS


def _modes(mode: str) -> str:
    verbs = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    return f"ALTER TABLE lake.{{table}} SET TBLPROPERTIES ({verbs})"


_COW: Final = _modes("copy-on-write")
_MOR: Final = _modes("merge-on-read")
_SOME: Final = f"kafka.partition = 1 AND kafka.offset % 5 = 2 AND kafka.offset < {ROWS}"
_FEW: Final = f"(SELECT kafka.partition AS p, kafka.offset AS o FROM lake.{{table}} WHERE {_SOME}) s"
_ON: Final = "t.kafka.partition = s.p AND t.kafka.offset = s.o"
_MERGE: Final = f"MERGE INTO lake.{{table}} t USING {_FEW} ON {_ON}"
_DELETE: Final = f"DELETE FROM lake.{{table}} WHERE {_SOME}"
_UPDATE: Final = f"UPDATE lake.{{table}} SET val.customer = 'nobody' WHERE val.customer IS NOT NULL AND {_SOME}"
_REWRITE: Final = "CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
_SORT: Final = (
    "CALL lake.system.rewrite_data_files(table => '{table}', strategy => 'sort',"
    " sort_order => 'kafka.offset DESC NULLS LAST', options => map('rewrite-all', 'true'))"
)
_Z_ORDER: Final = (
    "CALL lake.system.rewrite_data_files(table => '{table}', strategy => 'sort',"
    " sort_order => 'zorder(ingest_timestamp)', options => map('rewrite-all', 'true'))"
)
_MANIFESTS: Final = "CALL lake.system.rewrite_manifests(table => '{table}')"
_POSITIONS: Final = (
    "CALL lake.system.rewrite_position_delete_files(table => '{table}', options => map('rewrite-all', 'true'))"
)
_EXPIRE: Final = (
    "CALL lake.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2100-01-01 00:00:00',"
    " retain_last => 1)"
)
_ORPHANS: Final = "CALL lake.system.remove_orphan_files(table => '{table}', prefix_listing => true)"
_V3: Final = "ALTER TABLE lake.{table} SET TBLPROPERTIES ('format-version' = '3')"
_ADD: Final = "ALTER TABLE lake.{table} ADD COLUMN"
_DROP: Final = "ALTER TABLE lake.{table} DROP COLUMN"
_BACK: Final = "CALL lake.system.rollback_to_snapshot('{table}', {first})"


def _of(engine: str, effect: Effect, operations: dict[str, tuple[str, ...]], **more: object) -> tuple[Operation, ...]:
    return tuple(
        Operation(name=name, engine=engine, effect=effect, statements=statements, **more)  # type: ignore[arg-type]
        for name, statements in operations.items()
    )


def _beside(operations: dict[str, tuple[str, ...]], *names: str) -> dict[str, tuple[str, ...]]:
    return {name: operations[name] for name in names}


_KEEPING: Final = {
    "rewrite_data_files, bin-pack": (_REWRITE,),
    "rewrite_data_files, sort": (_SORT,),
    "rewrite_manifests": (_MANIFESTS,),
    "expire_snapshots": (_EXPIRE,),
    "rewrite_data_files, expire_snapshots, remove_orphan_files": (_REWRITE, _EXPIRE, _ORPHANS),
}
_REMOVING: Final = {
    "DELETE, copy-on-write": (_COW, _DELETE),
    "DELETE, merge-on-read": (_MOR, _DELETE),
    "MERGE that deletes, copy-on-write": (_COW, f"{_MERGE} WHEN MATCHED THEN DELETE"),
    "MERGE that deletes, merge-on-read": (_MOR, f"{_MERGE} WHEN MATCHED THEN DELETE"),
}
_ALTERING: Final = {
    "UPDATE, copy-on-write": (_COW, _UPDATE),
    "UPDATE, merge-on-read": (_MOR, _UPDATE),
}
_CHANGE: Final = " AND t.val.customer IS NOT NULL WHEN MATCHED THEN UPDATE SET val.customer = 'nobody'"

SPARK_OPERATIONS: Final = (
    *_of(SPARK, Effect.KEEPS, _KEEPING),
    *_of(SPARK, Effect.KEEPS, _beside(_KEEPING, "rewrite_data_files, bin-pack", "rewrite_manifests"), beside=True),
    *_of(SPARK, Effect.KEEPS, {"rewrite_data_files, expire_snapshots": (_REWRITE, _EXPIRE)}, beside=True),
    *_of(SPARK, Effect.KEEPS, {"rewrite_data_files, z-order": (_Z_ORDER,)}, is_flat=True),
    *_of(
        SPARK,
        Effect.KEEPS,
        {
            "remove_orphan_files": (_ORPHANS,),
            "a tag, then rewrite_data_files and expire_snapshots": (
                "ALTER TABLE lake.{table} CREATE TAG kept AS OF VERSION {first}",
                _REWRITE,
                _EXPIRE,
            ),
            "ADD COLUMN": (f"{_ADD} note string",),
            "ADD COLUMN in a struct of a list": (f"{_ADD} val.lines.element.note string",),
            "ADD COLUMN, then rewrite_data_files": (f"{_ADD} val.note string", _REWRITE),
            "RENAME COLUMN, then rewrite_data_files": (
                "ALTER TABLE lake.{table} RENAME COLUMN val.customer TO client",
                _REWRITE,
            ),
            "DROP COLUMN": (f"{_DROP} val.customer",),
            "DROP COLUMN kafka.batch_end, then rewrite_data_files": (f"{_DROP} kafka.batch_end", _REWRITE),
            "type promotion, then rewrite_data_files": (
                "ALTER TABLE lake.{table} ALTER COLUMN val.lines.element.price.nanos TYPE bigint",
                "ALTER TABLE lake.{table} ALTER COLUMN kafka.schema_version TYPE bigint",
                "ALTER TABLE lake.{table} ALTER COLUMN kafka.partition TYPE bigint",
                _REWRITE,
            ),
        },
    ),
    *_of(SPARK, Effect.REMOVES, _REMOVING, gone=_some),
    *_of(
        SPARK,
        Effect.REMOVES,
        _beside(_REMOVING, "DELETE, copy-on-write", "DELETE, merge-on-read"),
        gone=_some,
        beside=True,
    ),
    *_of(
        SPARK,
        Effect.REMOVES,
        {
            "DELETE merge-on-read, then rewrite_data_files": (_MOR, _DELETE, _REWRITE),
            "DELETE merge-on-read, then rewrite_position_delete_files": (_MOR, _DELETE, _POSITIONS),
            "DELETE, rewrite_data_files, expire_snapshots": (_COW, _DELETE, _REWRITE, _EXPIRE),
            "a branch with a DELETE, fast_forward": (
                "ALTER TABLE lake.{table} CREATE BRANCH work",
                _DELETE.replace("{table}", "{table}.branch_work"),
                "CALL lake.system.fast_forward('{table}', 'main', 'work')",
            ),
        },
        gone=_some,
    ),
    *_of(
        SPARK,
        Effect.REMOVES,
        {"DELETE of whole files": ("DELETE FROM lake.{table} WHERE kafka.partition = 1",)},
        gone=lambda partition, _: partition == 1,
    ),
    *_of(SPARK, Effect.REMOVES, {"DELETE of all": ("DELETE FROM lake.{table}",)}, gone=lambda *_: True),
    *_of(SPARK, Effect.ALTERS, _ALTERING, replay="altered"),
    *_of(SPARK, Effect.ALTERS, _beside(_ALTERING, "UPDATE, copy-on-write"), replay="altered", beside=True),
    *_of(
        SPARK,
        Effect.ALTERS,
        {
            "MERGE that updates, copy-on-write": (_COW, f"{_MERGE}{_CHANGE}"),
            "MERGE that updates, merge-on-read": (_MOR, f"{_MERGE}{_CHANGE}"),
            "UPDATE, then rewrite_data_files": (_COW, _UPDATE, _REWRITE),
        },
        replay="altered",
    ),
    *_of(
        SPARK,
        Effect.ALTERS,
        {
            "INSERT of rows that are there": (
                f"INSERT INTO lake.{{table}} SELECT * FROM lake.{{table}} WHERE {_SOME}",
            ),
            "DROP COLUMN, then rewrite_data_files": (f"{_DROP} val.customer", _REWRITE),
        },
        replay="ReplayError",
    ),
    *_of(
        SPARK,
        Effect.SETS_BACK,
        {
            "rollback_to_snapshot": (_BACK,),
            "set_current_snapshot": ("CALL lake.system.set_current_snapshot('{table}', {second})",),
            "REPLACE BRANCH main": ("ALTER TABLE lake.{table} REPLACE BRANCH main AS OF VERSION {second}",),
            "rollback_to_snapshot, cherrypick_snapshot": (
                _BACK,
                "CALL lake.system.cherrypick_snapshot('{table}', {third})",
            ),
            "rollback_to_snapshot, expire_snapshots": (_BACK, _EXPIRE),
        },
        replay="RolledBack",
    ),
    *_of(
        SPARK,
        Effect.UPGRADES,
        {"format v3": (_V3,), "format v3, then rewrite_data_files": (_V3, _REWRITE)},
    ),
    *_of(
        SPARK,
        Effect.UPGRADES,
        {
            "format v3, then DELETE with deletion vectors": (
                _V3,
                _MOR,
                "ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.data.path' = 's3://{bucket}/{table}')",
                _DELETE,
            )
        },
        gone=_some,
    ),
    *_of(
        SPARK,
        Effect.UPGRADES,
        {"format v3, then ADD COLUMN of a variant": (_V3, f"{_ADD} extra variant")},
        replay="FormatUpgraded",
    ),
)

_TRINO_SOME: Final = f'kafka."partition" = 1 AND kafka."offset" % 5 = 2 AND kafka."offset" < {ROWS}'
_TRINO_DELETE: Final = f"DELETE FROM lake.{{table}} WHERE {_TRINO_SOME}"
_EXECUTE: Final = "ALTER TABLE lake.{table} EXECUTE"
_TRINO_KEEPING: Final = {
    "optimize": (f"{_EXECUTE} optimize",),
    "optimize_manifests": (f"{_EXECUTE} optimize_manifests",),
    "expire_snapshots": (f"{_EXECUTE} expire_snapshots(retention_threshold => '0s')",),
    "optimize, expire_snapshots, remove_orphan_files": (
        f"{_EXECUTE} optimize",
        f"{_EXECUTE} expire_snapshots(retention_threshold => '0s')",
        f"{_EXECUTE} remove_orphan_files(retention_threshold => '0s')",
    ),
    "ADD COLUMN, then optimize": ("ALTER TABLE lake.{table} ADD COLUMN note varchar", f"{_EXECUTE} optimize"),
    "RENAME COLUMN, then optimize": (
        "ALTER TABLE lake.{table} RENAME COLUMN val.customer TO client",
        f"{_EXECUTE} optimize",
    ),
}

TRINO_OPERATIONS: Final = (
    *_of(TRINO, Effect.KEEPS, _TRINO_KEEPING, is_flat=True),
    *_of(TRINO, Effect.KEEPS, {"optimize": (f"{_EXECUTE} optimize",)}, is_flat=True, beside=True),
    *_of(
        TRINO,
        Effect.REMOVES,
        {"DELETE": (_TRINO_DELETE,), "DELETE, then optimize": (_TRINO_DELETE, f"{_EXECUTE} optimize")},
        gone=_some,
        is_flat=True,
    ),
    *_of(TRINO, Effect.REMOVES, {"DELETE": (_TRINO_DELETE,)}, gone=_some, is_flat=True, beside=True),
    *_of(
        TRINO,
        Effect.ALTERS,
        {"UPDATE": (f"UPDATE lake.{{table}} SET val = NULL WHERE val IS NOT NULL AND {_TRINO_SOME}",)},
        replay="altered",
        is_flat=True,
    ),
    *_of(
        TRINO,
        Effect.ALTERS,
        {"DROP COLUMN, then optimize": (f"{_DROP} val.customer", f"{_EXECUTE} optimize")},
        replay="ReplayError",
        is_flat=True,
    ),
    *_of(
        TRINO,
        Effect.SETS_BACK,
        {"rollback_to_snapshot": (f"{_EXECUTE} rollback_to_snapshot({{first}})",)},
        replay="RolledBack",
        is_flat=True,
    ),
)
