"""The Arrow Flight server (docs/flight.md)."""
