"""Questions about the flights, and the engines."""
