"""The same trivial tool as in `bare`, by Toolcrib's server of one's own."""

from __future__ import annotations

from server.own import serve


def echo(text: str) -> str:
    """Returns the text."""
    return text


if __name__ == "__main__":
    serve(echo)
