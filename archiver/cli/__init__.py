"""The `archiver` command line: a module for each command, with its options, output and exit codes.

What a command does belongs to other rooms. Modules here import them inside the command's function, so that `archiver
--help` stays fast.
"""

from archiver.cli.process import main

__all__ = ["main"]
