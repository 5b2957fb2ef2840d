"""The resources of tool scopes: files, file search, processes and the web."""
