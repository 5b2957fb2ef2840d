import pytest

from server.cli.terminal.errors import reported
from server.settings import SettingsError
from storage.errors import StorageError
from tools.core.errors import NotFoundError

MISSING = NotFoundError("No 'a'.", suggestions=["b", "c"], next_actions=["List them."])


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (SettingsError("port = 'x'"), ["Error: port = 'x'"]),
        (StorageError("Full.", suggestions=["Make room."]), ["Error: Full.", "Make room."]),
        (MISSING, ["Error: No 'a'.", "Did you mean: b, c", "List them."]),
        (ExceptionGroup("tasks", [ExceptionGroup("inner", [MISSING])]), ["Error: No 'a'."]),
    ],
)
def test_a_failure_that_a_person_can_act_on_is_its_message_and_exit_code_1(
    error: Exception, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught, reported():
        raise error
    assert caught.value.code == 1
    assert capsys.readouterr().err.splitlines()[: len(lines)] == lines


@pytest.mark.parametrize(
    "error",
    [
        ValueError("ours to repair"),
        ExceptionGroup("tasks", [SettingsError("one"), ValueError("ours to repair")]),
    ],
)
def test_a_defect_keeps_its_traceback(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, reported():
        raise error
    assert caught.value is error


def test_an_end_inside_a_task_group_ends_quietly() -> None:
    with pytest.raises(SystemExit) as caught, reported():
        raise BaseExceptionGroup("tasks", [SystemExit(3)])
    assert caught.value.code == 3
