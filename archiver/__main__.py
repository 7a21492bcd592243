"""`python -m archiver`: the `archiver` command where its script isn't on the path."""

from __future__ import annotations

from archiver.cli import main

if __name__ == "__main__":
    main()
