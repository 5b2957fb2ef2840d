"""Starting programs and ending them with all that they started."""
