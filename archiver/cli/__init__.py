"""One module per command.

Other packages are imported inside the command functions, so that `archiver --help` stays fast.
"""

from archiver.cli.process import main

__all__ = ["main"]
