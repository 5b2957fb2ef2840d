"""Requests with secrets, as an agent makes them: it names one, and finds its value nowhere."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

VALUE = "Zq81xyz-Zq81xyz_Zq81xyz"
SHOWN = "[secret:api]"
ALLOWED = ("http_request(secret=api)",)


@pytest.fixture
def opened(
    open_crib: Callable[..., Any], site: Any, workers: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Opens the product with a secret for the site on loopback."""
    monkeypatch.setenv("API_TOKEN", VALUE)

    def open_with(allow: tuple[str, ...] = ALLOWED, **more: Any) -> Any:
        secret = {"env": "API_TOKEN", "hosts": [site.address]}
        flags = {"requests__private": [site.address], "policy__allow": allow, **more}
        return open_crib(secrets={"api": secret, **more.pop("secrets", {})}, **flags)

    return open_with


def kept(place: Path) -> bytes:
    """All that is on the disk after a session."""
    return b"".join(each.read_bytes() for each in place.rglob("*") if each.is_file())


async def test_the_value_is_sent_and_is_in_no_answer_record_or_file(
    opened: Any, site: Any, tmp_path: Path
) -> None:
    echoed = json.dumps({"you sent": f"Bearer {VALUE}"})
    page = f"<title>a</title><p>You said {VALUE.replace('Z', '&#90;')} to us, and that is all.</p>"
    async with opened() as crib:
        for body, kind, forms in (
            (echoed, "application/json", ("auto", "json", "text", "base64")),
            (page, "text/html", ("auto", "markdown")),
            (f"x {VALUE}".encode("utf-16"), "text/plain", ("auto", "base64")),
            (b"\0" + VALUE.encode(), "application/zip", ("auto",)),
        ):
            url = site.serve("/", body, kind, X_Echo=VALUE)
            for form in forms:
                asked = {"url": url, "secret": "api", "as": form}
                result = await crib.client.call_tool("http_request", asked)
                assert not result.is_error
                told = result.model_dump_json()
                assert VALUE not in told
                assert result.structured_content["headers"]["x-echo"] == SHOWN
                if result.structured_content["form"] == "base64":
                    data = base64.b64decode(result.structured_content["content"])
                    assert VALUE.encode() not in data
                    assert SHOWN.encode() in data.replace(b"\0", b"")  # UTF-16 too
                else:
                    assert told.count("secret:api") > 2, told  # Markdown escapes the brackets
        memory = await crib.text("browse_memory", action="list", layer="l1")
    assert {each[2]["Authorization"] for each in site.asked} == {f"Bearer {VALUE}"}
    assert "http_request" in memory
    assert VALUE not in memory
    everything = kept(tmp_path / "data")
    assert VALUE.encode() not in everything
    assert base64.b64encode(VALUE.encode()) not in everything


async def test_the_audit_log_says_which_secret_was_used(
    opened: Any, site: Any, tmp_path: Path
) -> None:
    url = site.serve("/", "fine")
    async with opened() as crib:
        await crib.call("http_request", url=url, secret="api")  # noqa: S106  # its name
        await crib.failure("http_request", url=url, secret=VALUE)
    lines = (tmp_path / "data" / "audit" / "calls.jsonl").read_text().splitlines()
    said = [json.loads(line)["arguments"]["secret"] for line in lines]
    assert set(said) == {"api", "[redacted]"}


async def test_the_tool_names_the_secrets_that_there_are(opened: Any, open_crib: Any) -> None:
    async with opened() as crib:
        schema = crib.app.registry.find("http_request").input_schema["properties"]["secret"]
        assert schema["enum"] == ["api"]
        assert "api for 127.0.0.1" in schema["description"]
    async with open_crib() as crib:
        assert "secret" not in crib.app.registry.find("http_request").input_schema["properties"]
        kind, text = await crib.failure("http_request", url="https://a.test/", secret="api")  # noqa: S106  # its name
        assert kind == "invalid_arguments"
        assert "the settings name none" in text


async def test_a_person_is_asked_about_a_secret_that_no_rule_names(opened: Any, site: Any) -> None:
    url = site.serve("/", "fine")
    async with opened(("scope:system", f"http_request(GET http://{site.address}/**)")) as crib:
        await crib.call("http_request", url=url, secret="api")  # noqa: S106  # its name
    assert len(site.asked) == 1


async def test_what_reads_the_value_elsewhere_does_not_show_it(
    opened: Any, site: Any, tmp_path: Path
) -> None:
    url = site.serve("/", "fine")
    async with opened() as crib:
        (crib.root / "notes.txt").write_text(f"token={VALUE}\n")
        await crib.call("http_request", url=url, secret="api")  # noqa: S106  # its name
        assert SHOWN in await crib.text("read_file", file_path="notes.txt")
        await crib.client.call_tool("grep", {"pattern": VALUE})
        assert (crib.root / "notes.txt").read_text() == f"token={VALUE}\n"
    assert VALUE.encode() not in kept(tmp_path / "data")


async def test_a_file_with_a_secret_is_closed_to_every_tool(
    opened: Any, open_crib: Any, site: Any, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "token").write_text(VALUE)
    (root / "token").chmod(0o600)
    url = site.serve("/", "fine")
    secrets = {"api": {"file": str(root / "token"), "hosts": [site.address]}}
    flags = {"requests__private": [site.address], "policy__allow": (*ALLOWED, "bash")}
    async with open_crib(secrets=secrets, **flags) as crib:
        await crib.failure("read_file", file_path="token")
        await crib.failure("write_file", file_path="token", content="mine")
        assert VALUE not in await crib.text("bash", command="cat token")
        await crib.call("http_request", url=url, secret="api")  # noqa: S106  # its name
    assert site.asked[0][2]["Authorization"] == f"Bearer {VALUE}"


@pytest.mark.slow
async def test_a_server_over_stdio_keeps_it_too(raw_server: Any, site: Any, tmp_path: Path) -> None:
    url = site.serve("/", f"Bearer {VALUE}", "text/plain")
    server = raw_server(
        tmp_path,
        API_TOKEN=VALUE,
        TOOLCRIB_SECRETS=json.dumps({"api": {"env": "API_TOKEN", "hosts": [site.address]}}),
        TOOLCRIB_REQUESTS__PRIVATE=site.address,
        TOOLCRIB_POLICY__ALLOW=json.dumps([*ALLOWED, "bash"]),
        TOOLCRIB_LOG__LEVEL="DEBUG",
    )
    try:
        told = await anyio.to_thread.run_sync(
            lambda: json.dumps(
                [
                    server.call("http_request", url=url, secret="api"),  # noqa: S106  # its name
                    server.call("bash", command="env; cat /proc/*/environ"),
                ]
            )
        )
    finally:
        server.close()
    assert f"Bearer {SHOWN}" in told
    assert VALUE not in told
    assert VALUE.encode() not in kept(tmp_path)
