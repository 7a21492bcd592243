"""The file to hand to `spark-submit`: the `archiver` command line, its arguments following (docs/cluster.md)."""

from __future__ import annotations

from archiver.cli import main

if __name__ == "__main__":
    main()
