"""The command line."""

from archiver.cli.app import main

__all__ = ["main"]
