"""`python -m archiver`, for when the `archiver` script isn't on the path."""

from __future__ import annotations

from archiver.cli import main

if __name__ == "__main__":
    main()
