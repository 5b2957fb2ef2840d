"""Two readings of a line of a shell, to be compared: by a grammar of our own, and by a parser."""
