"""What a start leaves for later: seen from outside, in the real command's log of its imports."""

from pathlib import Path

from benchmarks.startup import HEAVY, modules_at_reply
from server.clients.locations import command_path

BROUGHT_BY_THE_SDK = {"uvicorn"}
"""`import mcp` loads it, whatever the transport."""


def test_the_first_reply_waits_for_nothing_heavy(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    command = [str(command_path()), "serve", "--root", str(tmp_path), "--data-dir", str(data_dir)]
    loaded = {name.split(".")[0] for name in modules_at_reply(command)}
    assert loaded >= {"mcp", "server", "tools", "storage"}  # the log of imports is one
    wrong = loaded & set(HEAVY) - BROUGHT_BY_THE_SDK
    assert not wrong, (
        f"`toolcrib serve` loads {sorted(wrong)} before its first reply: import them inside the "
        "function that needs them; `PYTHONPROFILEIMPORTTIME=1 toolcrib serve` shows who did."
    )
