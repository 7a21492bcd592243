"""Questions about the flights, and the engines that are asked."""
