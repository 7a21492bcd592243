"""`archiver registry rebuild`: making the registry again from tables, journal and files."""
