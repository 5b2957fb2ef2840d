"""Each secret of the settings is tried, and none is shown."""

from pathlib import Path
from typing import Any

import pytest

from server.cli.checks.findings import Finding
from server.cli.checks.installation import check_secrets
from server.settings.sources import load


def found(place: Path, **secrets: Any) -> list[Finding]:
    flags = {"data_dir": place / "data", "root": place, "secrets": secrets}
    return list(check_secrets(load(flags, environ={"TOOLCRIB_CONFIG": ""})))


def test_a_secret_that_can_be_used_says_what_it_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "npm_0123456789")
    program = {"programs": ["npm publish *", "npm whoami"], "variable": "NPM_TOKEN"}
    requests = {"hosts": ["a.com", "b.com:8443"]}
    (finding,) = found(tmp_path, npm={"env": "TOKEN", **program, **requests})
    assert (finding.subject, finding.ok) == ("Secret npm", True)
    assert finding.detail == (
        "for requests to a.com, b.com:8443; for npm publish *, npm whoami, as NPM_TOKEN"
    )


def test_a_secret_that_is_missing_or_open_to_others_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("npm_0123456789")
    path.chmod(0o644)
    missing, opened = found(
        tmp_path,
        a={"env": "TOOLCRIB_TEST_NONE", "hosts": ["a.com"]},
        b={"file": str(path), "hosts": ["a.com"]},
    )
    assert (missing.ok, opened.ok) == (False, False)
    assert "The user sets TOOLCRIB_TEST_NONE" in missing.detail
    assert f"chmod 600 {path}" in opened.detail
    assert "npm_0123456789" not in opened.detail
