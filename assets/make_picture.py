"""Takes the picture of the demo for the README.

    python assets/make_picture.py

Runs `toolcrib demo` on a terminal of 80 columns and writes what it shows, up to the clients' part,
to `assets/demo.svg`.
"""

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "assets" / "demo.svg"
COLUMNS = 80
END = "Connect a client"
TITLE = "toolcrib demo"
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def main() -> None:
    """Takes the picture."""
    shown = _shown([str(Path(sys.executable).with_name("toolcrib")), "demo"])
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown))
    svg = console.export_svg(title=TITLE, unique_id="toolcrib-demo")
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # nothing is fetched for it
    PICTURE.write_text(re.sub(r"Fira Code, monospace", FONTS, svg), encoding="utf-8")


def _shown(command: list[str]) -> str:
    """What a command prints on a terminal, without its bars."""
    mine, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    printed = b""
    with subprocess.Popen(  # noqa: S603  # the demo of this checkout
        command, stdout=its, stderr=subprocess.DEVNULL, env=environment
    ):
        os.close(its)
        with contextlib.suppress(OSError):  # a terminal that nobody has open any longer
            while said := os.read(mine, 65536):
                printed += said
    os.close(mine)
    return printed.decode().replace("\r\n", "\n").partition(END)[0].rpartition("\n")[0]


if __name__ == "__main__":
    main()
