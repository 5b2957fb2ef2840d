"""The servers that Toolcrib's start is compared with."""
