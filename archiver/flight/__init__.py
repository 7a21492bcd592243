"""`archiver serve flight`: clients send rows over Arrow Flight (docs/flight.md)."""
