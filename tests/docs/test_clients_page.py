"""The page of clients: a row for each that we know, with the files that are really used."""

import re
from pathlib import Path

import pytest

from server.clients.client import Client
from server.clients.table import CLIENTS
from tests.docs.following import DOCS, broken_links

PAGE = (DOCS / "clients.md").read_text(encoding="utf-8")
ROWS = {
    row[1]: row
    for row in re.findall(r"^\| (.+?) \| `(\S+)` \| `(.+?)` \| (.*) \|$", PAGE, re.MULTILINE)
}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))
def test_a_client_has_a_row_with_its_files(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/you")
    title, _, file, project = ROWS[client.name]
    assert title == client.title
    assert client.file_to_write({}, None) == Path(file.replace("~", "/home/you"))
    assert project == (f"`{client.project[0]}`" if client.project else "")


def test_no_row_is_of_a_client_that_is_gone_and_no_link_is_broken() -> None:
    assert list(ROWS) == list(CLIENTS)
    assert broken_links(PAGE) == []
