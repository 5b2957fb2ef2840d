"""What agents did to files: each change, what it replaced, and how a root was last seen."""
