"""What the server and its workers say alike; both import it, as it needs no package."""

from __future__ import annotations

__all__ = ["AGAIN"]

AGAIN = "Write or fetch the file again."
"""What to do about a Parquet file that is broken."""
