"""A skill with files of each kind beside it, for the tests that serve it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_pdf"]


def write_pdf(directory: Path, text: str) -> None:
    """Writes the skill into a directory that is made: its SKILL.md says the text."""
    (directory / "references").mkdir(parents=True)
    (directory / "SKILL.md").write_text(text)
    (directory / "references" / "a b#ü.md").write_text("\ufeffForms.\r\n", newline="")
    (directory / "logo.png").write_bytes(b"\x89PNG\xff")
    (directory / ".env").write_text("KEY=secret")
    (directory / "key").symlink_to("/etc/passwd")
