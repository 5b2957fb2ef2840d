"""What the scopes of tools grant: files, search among them, processes and the web."""
