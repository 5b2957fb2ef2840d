import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from server.transport.middleware import SoundAuthority

APP = Starlette(routes=[Route("/", lambda _request: PlainTextResponse("passed"))])
CLIENT = TestClient(SoundAuthority(APP))

names = st.from_regex(r"[a-z0-9.-]+|\[[0-9a-f:.]+\]", fullmatch=True)
ports = st.just("") | st.integers(0, 65535).map(lambda port: f":{port}")


@given(names, ports, st.sampled_from(["http", "https", "vscode-webview"]))
def test_a_host_and_its_port_pass(name: str, port: str, scheme: str) -> None:
    headers = {"Host": name + port, "Origin": f"{scheme}://{name}{port}"}
    assert CLIENT.get("/", headers=headers).text == "passed"


@given(names, st.text("0123456789", max_size=5), st.sampled_from("@./:#?a[] "), names)
def test_what_only_begins_like_one_is_refused(name: str, port: str, mark: str, more: str) -> None:
    authority = f"{name}:{port}{mark}{more}"
    assert CLIENT.get("/", headers={"Host": authority}).status_code == 421
    origin = {"Host": "localhost", "Origin": f"http://{authority}"}
    assert CLIENT.get("/", headers=origin).status_code == 403


@pytest.mark.parametrize("origin", ["null", ""])
def test_an_origin_that_names_nobody_is_left_to_the_list_of_allowed_ones(origin: str) -> None:
    assert CLIENT.get("/", headers={"Origin": origin}).text == "passed"
