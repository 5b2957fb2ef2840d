"""The worker: takes one request after another from the server, until that hangs up."""

from __future__ import annotations

import threading
from typing import Any

from .channel import Call, Channel
from .failures import failure_of


def main(on_cluster: bool) -> None:
    """Loads Data-Juicer, which takes seconds, and runs what it is told to.

    For runs on a cluster, a program of its own loads it.
    """
    channel = Channel()
    channel.receive()  # what to load, of which nothing is meant for this worker
    if not on_cluster:
        from .preparing import prepare

        prepare()
    channel.send({"loaded": {"offers": [], "problems": [], "files": []}})
    calls: dict[int, Call] = {}
    while (message := channel.receive()) is not None:
        if "cancel" in message:
            if (cancelled := calls.get(message["cancel"])) is not None:
                cancelled.cancel()
            continue
        call = calls[message["call"]] = Call(message["call"], channel)
        threading.Thread(target=_answer, args=(call, message, calls), daemon=True).start()


def _answer(call: Call, message: dict[str, Any], calls: dict[int, Call]) -> None:
    """Does what a message asks, and says what came of it."""
    try:
        from .inspecting import look, make
        from .running import name_files, run

        do = {"look": look, "make": make, "name_files": name_files, "run": run}[message["do"]]
        structured = do(message, call)
        is_error = False
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is the answer
        structured, is_error = failure_of(error, message["source"]), True
    del calls[call.number]
    call.end(structured, is_error=is_error)
