"""A table's files of which only manifest lists may be read."""

from __future__ import annotations

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO


class ManifestLists(PyArrowFileIO):
    def new_input(self, location: str) -> PyArrowFile:
        assert "/snap-" in location, f"it isn't a manifest list: {location}"
        return super().new_input(location)
