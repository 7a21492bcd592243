"""The file for `spark-submit`: the `archiver` command line, followed by its arguments (docs/cluster.md)."""

from __future__ import annotations

from archiver.cli import main

if __name__ == "__main__":
    main()
