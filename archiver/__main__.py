"""`python -m archiver`."""

from __future__ import annotations

from archiver.cli import main

if __name__ == "__main__":
    main()
