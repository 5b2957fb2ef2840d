import signal

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from server.cli.terminal.errors import run, stoppable


def test_ctrl_c_comes_out_when_no_thread_of_the_work_runs_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = []

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            while True:
                anyio.from_thread.run(anyio.lowlevel.checkpoint)
                anyio.from_thread.check_cancelled()
        finally:
            ended.append("the thread")

    with pytest.raises(KeyboardInterrupt):
        run(lambda: anyio.to_thread.run_sync(work))
    assert ended == ["the thread"]
    assert caplog.text == ""


def test_ctrl_c_at_the_very_end_of_the_work_is_not_lost() -> None:
    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        for _ in range(3):
            await anyio.lowlevel.cancel_shielded_checkpoint()

    with pytest.raises(KeyboardInterrupt):
        run(work)


def test_a_command_that_is_stopped_says_so_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, stoppable("Run it again."):
        signal.raise_signal(signal.SIGINT)
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "Stopped. Run it again.\n")


def test_work_that_nobody_interrupts_gives_its_result_and_its_errors() -> None:
    async def work(number: int) -> float:
        await anyio.lowlevel.checkpoint()
        return 1 / number

    assert run(lambda: work(2)) == 0.5
    with pytest.raises(ZeroDivisionError):
        run(lambda: work(0))
