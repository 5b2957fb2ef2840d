import subprocess
from pathlib import Path

import pytest

from server.hooks.payloads import CLIENTS
from server.hooks.rules_file import MARK, remove_rules
from storage.database import RECORD, Database
from tests.server.hooks.conftest import Clients

RULES = CLIENTS["cursor"].rules


def answer(clients: Clients, text: str) -> None:
    clients.fire("cursor", "beforeSubmitPrompt", "1", prompt=text)
    clients.fire("cursor", "afterAgentResponse", "1", text="All right.")


@pytest.fixture
def repository(clients: Clients) -> Path:
    folder: Path = clients.project("shop")
    command = ["git", "init", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_the_rules_follow_the_memory_and_git_does_not_see_them(
    clients: Clients, repository: Path
) -> None:
    answer(clients, "We decided to use tabs.")
    text = (repository / RULES).read_text(encoding="utf-8")
    assert text.startswith("---\n")
    assert MARK in text
    assert "We decided to use tabs." in text
    answer(clients, "We agreed to drop Python 3.10.")
    assert "3.10" in (repository / RULES).read_text(encoding="utf-8")
    status = ["git", "-C", str(repository), "status", "--porcelain"]
    assert subprocess.run(status, check=True, capture_output=True).stdout == b""
    exclude = (repository / ".git/info/exclude").read_text(encoding="utf-8")
    assert exclude.splitlines().count(f"/{RULES}") == 1


def test_they_are_removed_everywhere_with_their_empty_folders(
    clients: Clients, repository: Path
) -> None:
    answer(clients, "We decided to use tabs.")
    database = Database(clients.options.data_dir / RECORD)
    assert remove_rules(database, ["copilot"]) == []
    assert remove_rules(database) == [repository / RULES]
    assert remove_rules(database) == []
    database.close()
    assert not (repository / ".cursor").exists()
    assert RULES not in (repository / ".git/info/exclude").read_text(encoding="utf-8")


def test_other_lines_of_gits_excludes_stay_in_any_encoding(
    clients: Clients, repository: Path
) -> None:
    exclude = repository / ".git/info/exclude"
    exclude.write_bytes(b"caf\xe9\r\nlast")
    answer(clients, "We decided to use tabs.")
    assert f"/{RULES}\n".encode() in exclude.read_bytes()
    database = Database(clients.options.data_dir / RECORD)
    assert remove_rules(database) == [repository / RULES]
    database.close()
    assert exclude.read_bytes() == b"caf\xe9\r\nlast\n"


def test_nothing_is_left_of_them_in_an_ignored_project(clients: Clients, repository: Path) -> None:
    answer(clients, "We decided to use tabs.")
    (repository / ".toolcribignore").write_text("*\n", encoding="utf-8")
    answer(clients, "Go on.")
    assert not (repository / ".cursor").exists()
    (repository / ".toolcribignore").unlink()
    answer(clients, "Go on.")
    assert "We decided to use tabs." in (repository / RULES).read_text(encoding="utf-8")


def test_a_file_of_the_user_stays(clients: Clients, repository: Path) -> None:
    path = repository / RULES
    path.parent.mkdir(parents=True)
    path.write_text("Mine.", encoding="utf-8")
    answer(clients, "We decided to use tabs.")
    assert path.read_text(encoding="utf-8") == "Mine."


@pytest.mark.parametrize("link", [".cursor", ".cursor/rules", RULES])
def test_links_are_not_followed(clients: Clients, repository: Path, link: str) -> None:
    elsewhere = clients.folder / "elsewhere"
    elsewhere.mkdir()
    path = repository / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(elsewhere / "file.mdc" if link == RULES else elsewhere)
    answer(clients, "We decided to use tabs.")
    assert list(elsewhere.iterdir()) == []
