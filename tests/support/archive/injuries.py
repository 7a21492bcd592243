"""Seeded injuries of an archive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.support.archive.injured_files import (
    changed_header,
    changed_key,
    changed_offset,
    changed_page_count,
    changed_time,
    changed_value,
    cut_file,
    doubled_file,
    doubled_row,
    dropped_row,
    edited_footer_digest,
    edited_footer_gone,
    edited_footer_place,
    flipped_page,
    flipped_page_header,
    missing_file,
    swapped_files,
)
from tests.support.archive.injured_metadata import (
    broken_entry,
    dropped_manifest_entry,
    edited_manifest_bounds,
    edited_manifest_list,
    edited_manifest_rows,
    edited_registry,
    flipped_entry,
    missing_entry,
)
from tests.support.archive.patient import Patient

Injury = Callable[[Patient, int], str]
"""Injures a patient by a seed, and returns a description."""

INJURIES: Final[dict[str, Injury]] = {
    item.__name__: item
    for item in (
        flipped_page,
        flipped_page_header,
        changed_page_count,
        cut_file,
        missing_file,
        swapped_files,
        doubled_file,
        dropped_row,
        doubled_row,
        changed_header,
        changed_value,
        changed_key,
        changed_offset,
        changed_time,
        edited_footer_digest,
        edited_footer_place,
        edited_footer_gone,
        missing_entry,
        flipped_entry,
        broken_entry,
        edited_manifest_rows,
        edited_manifest_bounds,
        dropped_manifest_entry,
        edited_manifest_list,
        edited_registry,
    )
}
