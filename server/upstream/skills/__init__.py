"""Skills of other servers (SEP-2640): pinned by their digests, read on demand."""
