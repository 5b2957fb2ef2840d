"""FastMCP's proxy before another server: fast_proxy.py URL PORT."""

from __future__ import annotations

import sys

from fastmcp.server import create_proxy

if __name__ == "__main__":
    proxy = create_proxy(sys.argv[1], name="proxy")
    proxy.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
