"""No secret is in what is recorded or told of a call: neither by schema, by key nor by pattern."""

from __future__ import annotations

import json
import re
import reprlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    Field,
    Json,
    Secret,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    ValidationError,
)
from typing_extensions import TypedDict

from storage.index.bounded import clip
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.audit.redact import SecretArguments, redacted
from tools.core.audit.secret_patterns import REDACTED, redacted_text
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolResult
from tools.core.spec import Alias
from tools.toolsearch import call_tool, call_tools

SECRET = "hunter2-Zq81xyzZq81xyz"  # noqa: S105  # it opens nothing

SECRET_KEYS = [
    *(
        *("password", "db_pass", "Passwd", "db_password", "TOKEN", "access_token", "x-auth-token"),
        "secret",
    ),
    *("client_secret", "api_key", "apiKey", "X-Api-Key", "Authorization", "cookie", "Set-Cookie"),
    *("AWS_SECRET_ACCESS_KEY", "private_key", "credentials", "auth", "pin", "passphrase"),
]

SECRET_TEXTS = [
    f"Authorization: Bearer {SECRET}",
    f"curl -H 'Authorization: Basic {SECRET}' https://example.com",
    f'{{"headers": {{"authorization": "Bearer {SECRET}"}}}}',
    f"Cookie: sid={SECRET}; theme=dark",
    f"use bearer {SECRET} here",
    f"password={SECRET}&user=ann",
    f"MY_PASSWORD: {SECRET}",
    f'{{"api_key": "{SECRET}"}}',
    f'{{\\"token\\": \\"{SECRET}\\"}}',
    f"export OPENAI_API_KEY='{SECRET} with blanks'",
    f"--client-secret={SECRET}",
    f"https://ann:{SECRET}@example.com/path",
    f"sk-{SECRET}",
    f"eyJhbGciOiJIUzI1NiJ9.{SECRET}.abc",
    f"deploy --password {SECRET} --host db",
    f"deploy --api-key '{SECRET} with blanks' --token-file t",
    f"openssl rsa -passin pass:{SECRET}",
    f"curl -s -u ann:{SECRET} https://example.com",
    f"curl --proxy-user 'ann:{SECRET}' --user=bob:{SECRET} https://example.com",
    f"mysql -u root -p{SECRET} shop",
    f"mysqldump -p'{SECRET} xyzZq81' shop",
    f"sshpass -p {SECRET} ssh host",
    f"docker login -u ann -p {SECRET} registry.example.com",
    f"redis-cli -a {SECRET} ping",
    f"echo {SECRET} | sudo -S true",
    f"echo -n 'ann:{SECRET}' | chpasswd",
    f"printf '{SECRET}' | docker login --password-stdin",
    f"sudo -S true <<< '{SECRET}'",
    f"MY_PASSWORD=a' b'\\ {SECRET} ./run",
    f'MY_PASSWORD="a\\"b {SECRET}" ./run',
    f"unzip -P {SECRET} a.zip",
    f"7z x -p{SECRET} a.7z",
    f"ldapsearch -x -w {SECRET}",
    f"keytool -list -storepass {SECRET}",
    f"curl -b 'session={SECRET}' https://example.com",
    f"wget 'https://example.com/a?x=1&key={SECRET}'",
    f"DB_PASS={SECRET} ./run",
    f"curl -sSu ann:{SECRET} https://example.com",
    f"curl --cert c.pem --pass {SECRET} https://example.com",
    f"curl -F pin={SECRET} https://example.com",
    f"http --auth ann:{SECRET} https://example.com",
    f"http -a 'ann:{SECRET}' https://example.com",
    f"npm login --auth={SECRET}",
    f"npm config set //registry.example.com/:_authToken {SECRET}",
    f"aws configure set aws_secret_access_key {SECRET}",
    f"gh auth login --with-token <<< {SECRET}",
    f"echo {SECRET} | gh auth login --with-token",
    f"echo {SECRET} | su -c id",
    f"echo -e '{SECRET}\\n{SECRET}' | passwd ann",
    f"printf '%s\\n' '{SECRET}' | sudo -S id",
    f"cryptsetup luksOpen disk name <<< {SECRET}",
    f"read -rs PIN <<< {SECRET}",
    f"redis-cli -a{SECRET} ping",
    f"SSHPASS={SECRET} sshpass -e ssh host",
    f"mosquitto_pub -u ann -P {SECRET} -t a -m b",
    f"usermod -p {SECRET} ann",
    f"7za a '-p{SECRET}' a.7z",
    f"rar a -hp{SECRET} a.rar b",
    f"cmdkey /add:host /user:ann /pass:{SECRET}",
    f"xfreerdp /u:ann /p:{SECRET} /v:host",
    f"smbclient //host/share -U ann%{SECRET}",
    f"sqlplus ann/{SECRET}@db",
    f"psql -c \"ALTER USER ann WITH PASSWORD '{SECRET}'\"",
    f"CREATE USER ann IDENTIFIED BY '{SECRET}'",
    f"mysqladmin -u root password {SECRET}",
    f"nmcli dev wifi connect net password {SECRET}",
    f"neo4j-admin dbms set-initial-password {SECRET}",
    f"rabbitmqctl add_user ann {SECRET}",
    f"htpasswd -bc users ann {SECRET}",
    f"wpa_passphrase net {SECRET}",
    f"vault login {SECRET}",
    f"bw unlock {SECRET}",
    f"rclone obscure {SECRET}",
    f"PGPASSWORD={SECRET} psql -h db",
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET.replace('-', '')}\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("key", SECRET_KEYS)
@pytest.mark.parametrize("value", [SECRET, [SECRET], {"deep": {"er": SECRET}}, 123_456])
def test_what_a_key_calls_secret_is_left_out_at_any_depth(key: str, value: Any) -> None:
    kept = redacted({"a": {"b": [{key: value}]}}, 500)
    assert kept == {"a": {"b": [{key: REDACTED}]}}


@pytest.mark.parametrize("text", SECRET_TEXTS)
def test_what_looks_like_a_secret_in_a_text_is_left_out(text: str) -> None:
    for kept in (redacted_text(text, 500), json.dumps(redacted({"command": text}, 500))):
        assert "hunter2" not in kept
        assert "xyzZq81" not in kept
        assert REDACTED in kept


@pytest.mark.parametrize(
    "text",
    [
        *("my secret is out", "the token count", "a cookie recipe", "https://example.com/a@b"),
        *("a:b@c", "docker run -u 1000:1000 -p 80:80 nginx"),
        *("docker login --password-stdin registry.io", "mysql -h db -P 3306", "git bypass=1"),
        *("sort --key 2", "echo hello | cat", "make pass: all", "mkdir -p library/rare"),
        *("git log --author ann | cat", "grep -u pattern a:b", "echo a | sort | uniq"),
        *("change your password soon", "identified by name", "cat <<< hello"),
        *("docker login registry.io", "ls -a http/x", "redis-cli --scan"),
    ],
)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert redacted_text(text, 500) == text


@pytest.mark.parametrize("gap", ["\n", "\r\n", "\n    "])
@pytest.mark.parametrize("at", [6, 14, 30])
@pytest.mark.parametrize(
    "token",
    [
        "ghp_" + "a1B2" * 9,
        "sk-proj-" + "Ab3dEf" * 8,
        "glpat-" + "x9Yz" * 8,
        "AIza" + "Sy7b" * 9,
        "eyJhbGciOiJI1.eyJzdWIiOiIx3.SflKxwRJSMeKKF2QT4",
    ],
)
@pytest.mark.parametrize("before", ["Use ", "export GITHUB_TOKEN=", "Authorization: Bearer "])
def test_a_token_that_a_line_break_cuts_in_two_is_left_out(
    before: str, token: str, at: int, gap: str
) -> None:
    text = f"{before}{token[:at]}{gap}{token[at:]} in the tests.\nThen go on."
    shown = redacted_text(text, 1_000)
    assert token[:at] not in shown
    assert token[at:] not in shown
    assert shown.endswith("Then go on.")


def test_the_line_after_a_token_stays() -> None:
    token = "ghp_" + "a1B2" * 9
    assert redacted_text(f"{token}\nexport it, then run", 100) == "[redacted]\nexport it, then run"


@pytest.mark.parametrize("value", [None, "", True])
def test_the_lack_of_a_secret_stays(value: Any) -> None:
    assert redacted({"token": value}, 500) == {"token": value}


def test_a_secret_that_the_end_cuts_in_two_is_left_out() -> None:
    for length in range(300, 700):
        assert "hunter2" not in redacted_text(f"{'a ' * (length // 2)}password={SECRET} b", 400)


def test_what_is_too_much_is_cut() -> None:
    assert redacted_text("a" * 100, 10) == clip("a" * 100, 10) == "a" * 9 + "…"
    kept = redacted({"long": "b" * 5_000, "more": [0] * 5_000, "last": "never"}, 900)
    assert len(json.dumps(kept, ensure_ascii=False)) < 1_100
    assert kept["long"].startswith("bbb")
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"in": deep}
    assert json.dumps(redacted(deep, 900)).count("in") < 10


def test_numbers_that_are_none_to_json_are_told() -> None:
    kept = redacted(
        {"nan": float("nan"), "big": 10**5_000, "bytes": b"\0", "one": 1, "x": 0.5}, 500
    )
    assert kept == {
        "nan": "nan",
        "big": "a number of 16610 bits",
        "bytes": "bytes",
        "one": 1,
        "x": 0.5,
    }


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=50,
)


@given(value=st.dictionaries(st.text(st.characters()), anything), budget=st.integers(16, 900))
def test_any_arguments_become_json_within_their_bounds(value: Any, budget: int) -> None:
    kept = redacted(value, budget)
    assert len(json.dumps(kept, ensure_ascii=False, allow_nan=False)) < 8 * budget + 500


Hidden = Annotated[str, Field(json_schema_extra={"writeOnly": True})]


class Account(BaseModel):
    user: str
    password: SecretStr


class Door(BaseModel):
    kind: Literal["door"] = "door"
    code: int


class Node(BaseModel):
    key: SecretStr | None = None
    children: list[Node] = []


@dataclass
class Sealed:
    label: str
    wax: Hidden


class Typed(TypedDict):
    key: SecretBytes


def login(  # noqa: PLR0913, PLR0917  # each holds secrets in another way
    user: str = "",
    password: SecretStr | None = None,
    pin: Secret[int] | None = None,
    token: Annotated[Hidden, Alias("api_key")] = "changeme",  # noqa: S107  # it opens nothing
    word: str = Field("open", json_schema_extra={"format": "password"}),
    account: Account | None = None,
    either: Account | Door | None = None,
    accounts: dict[str, list[Account]] | None = None,
    pair: tuple[str, SecretStr] | None = None,
    node: Node | None = None,
    sealed: Sealed | None = None,
    typed: Typed | None = None,
    named: Json[Account] | None = None,
    tags: dict[str, str] | None = None,
    doors: dict[SecretStr, int] | None = None,
) -> str:
    """Logs in."""
    return user


def look(path: str) -> str:
    """Looks at a place."""
    return path


LOGIN, LOOK = FunctionToMCP.convert(login), FunctionToMCP.convert(look)
TOOLS = {
    **{spec.name: spec for spec in (LOGIN, LOOK)},
    **{each.__name__: FunctionToMCP.convert(each) for each in (call_tool, call_tools)},
}


def secrets_of(tool: str, arguments: Mapping[str, Any]) -> SecretArguments:
    """The secrets of a call."""
    return SecretArguments(TOOLS.get(tool), arguments, TOOLS.get)


def of(tool: str, /, **arguments: object) -> object:
    """The arguments of a call as they may be shown."""
    return secrets_of(tool, arguments).arguments


def of_schema(schema: Mapping[str, Any], value: object) -> SecretArguments:
    """The secrets of a call of a tool with one argument of that schema."""
    whole = {"type": "object", "properties": {"value": schema}, "$defs": schema.get("$defs", {})}
    return SecretArguments(replace(LOOK, input_schema=whole), {"value": value}, TOOLS.get)


ANN = {"user": "ann", "password": "hunter2"}
HIDDEN = {"user": "ann", "password": REDACTED}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"user": "ann", "password": "hunter2"}, HIDDEN),
        ({"pin": 271828}, {"pin": REDACTED}),
        ({"token": "hunter2", "word": "sesame"}, {"token": REDACTED, "word": REDACTED}),
        ({"api_key": "hunter2"}, {"token": REDACTED}),
        ({"doors": {"hunter2": 7}}, {"doors": {REDACTED: 7}}),
        ({"account": ANN}, {"account": HIDDEN}),
        ({"either": ANN}, {"either": HIDDEN}),
        ({"either": {"code": 7}}, {"either": {"code": 7}}),
        ({"accounts": {"home": [ANN, ANN]}}, {"accounts": {"home": [HIDDEN, HIDDEN]}}),
        ({"pair": ["ann", "hunter2"]}, {"pair": ["ann", REDACTED]}),
        (
            {"node": {"children": [{"key": "hunter2", "children": []}]}},
            {"node": {"children": [{"key": REDACTED, "children": []}]}},
        ),
        ({"sealed": {"label": "a", "wax": "b"}}, {"sealed": {"label": "a", "wax": REDACTED}}),
        ({"typed": {"key": "hunter2"}}, {"typed": {"key": REDACTED}}),
        ({"named": '{"user": "ann", "password": "hunter2"}'}, {"named": REDACTED}),
        ({"tags": {"a": "b"}}, {"tags": {"a": "b"}}),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_secret_is_hidden_wherever_it_stands_and_nothing_else(
    given: dict[str, Any], shown: dict[str, Any]
) -> None:
    LOGIN.validate(given)
    assert of("login", **given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"pasword": "hunter2"}, {"pasword": REDACTED}),
        ({"account": {"usr": "ann", **ANN}}, {"account": {"usr": REDACTED, **HIDDEN}}),
        ({"account": '{"user": "ann", "password'}, {"account": REDACTED}),
        ({"account": [ANN]}, {"account": [REDACTED]}),
        ({"accounts": {"home": ANN}}, {"accounts": {"home": dict.fromkeys(ANN, REDACTED)}}),
        ({"accounts": "hunter2"}, {"accounts": REDACTED}),
        ({"password": {"value": ["hunter2"]}}, {"password": REDACTED}),
        ({"pair": ["ann", "hunter2", "more"]}, {"pair": ["ann", REDACTED, REDACTED]}),
        (
            {"password": None, "pin": True, "token": ""},
            {"password": None, "pin": True, "token": ""},
        ),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_fits_no_schema_is_hidden_where_a_secret_may_stand(
    given: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert of("login", **given) == shown


def test_a_tool_without_secrets_and_one_that_is_not_there_show_what_they_are_given() -> None:
    for name in ("look", "made_up"):
        call = secrets_of(name, {"path": "a", "other": "b"})
        assert call.arguments == {"path": "a", "other": "b"}
        assert not call.found


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"name": "login", "arguments": ANN}, {"name": "login", "arguments": HIDDEN}),
        ({"name": "look", "arguments": ANN}, {"name": "look", "arguments": ANN}),
        ({"name": "made_up", "arguments": ANN}, {"name": "made_up", "arguments": REDACTED}),
        ({"name": "login", "arguments": '{"passw'}, {"name": "login", "arguments": REDACTED}),
    ],
    ids=str,
)
def test_the_arguments_of_a_call_within_a_call_are_those_of_its_own_tool(
    given: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert of("call_tool", **given) == shown
    assert of("call_tools", calls=[given, given]) == {"calls": [shown, shown]}


def test_calls_that_are_sent_as_text_are_hidden_with_their_secrets() -> None:
    secret = '[{"name": "login", "arguments": {"password": "hunter2"}}]'  # noqa: S105  # the same
    plain = '[{"name": "look", "arguments": {"path": "a"}}]'
    assert of("call_tools", calls=secret) == {"calls": REDACTED}
    assert of("call_tools", calls=plain) == {"calls": plain}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"type": "string"}, {"writeOnly": True}]},
        {"if": {"format": "password"}},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"format": "password"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"writeOnly": True}}},
        {"items": {"writeOnly": True}},
        {"patternProperties": {"^x": {"format": "password"}}},
        {"properties": {"default": {"writeOnly": True}}},
        {"dependentSchemas": {"a": {"properties": {"b": {"writeOnly": True}}}}},
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}},
            "writeOnly": True,
        },
    ],
    ids=str,
)
def test_any_word_of_a_schema_may_lead_to_a_secret(schema: dict[str, Any]) -> None:
    assert of_schema(schema, "hunter2").arguments == {"value": REDACTED}


@pytest.mark.parametrize(
    "schema",
    [
        {"default": {"writeOnly": True}, "examples": [{"format": "password"}]},
        {"properties": {"writeOnly": {"type": "boolean"}, "format": {"type": "string"}}},
        {"$ref": "#/$defs/gone"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"properties": ["no", "schemas"], "items": "none", "anyOf": {"neither": 1}},
    ],
    ids=str,
)
def test_what_only_looks_like_the_word_is_none(schema: dict[str, Any]) -> None:
    assert of_schema(schema, {"a": 1}).arguments == {"value": {"a": 1}}


def test_a_value_of_endless_levels_is_hidden_as_a_whole() -> None:
    value: Any = "hunter2"
    for _ in range(5_000):
        value = {"children": [value]}
    assert of("login", node=value) == REDACTED


def test_texts_about_a_call_are_without_its_secrets_however_they_write_them() -> None:
    call = secrets_of("login", {"password": 'a"b hunter2', "pin": 271828, "account": {"user": "x"}})
    encoded = b64encode(b'{"pass": "a\\"b hunter2"}').decode()
    url = "https://x.org/?p=a%22b%20hunter2"
    for text in ('It is a"b hunter2.', r'{"p": "a\"b hunter2"}', url, "271828"):
        assert REDACTED in call.text(text)
        assert "hunter2" not in call.text(text)
    assert call.text("nothing of it") == "nothing of it"
    assert encoded not in call.text(b64encode(b'a"b hunter2 and more').decode())


@pytest.mark.parametrize(
    "write",
    [
        lambda value: "".join(f"&#{ord(each)};" for each in value),
        lambda value: "".join(f"\\x{ord(each):02x}" for each in value),
        lambda value: f"{value[:4]}%{ord(value[4]):02X}{value[5:]}",
        lambda value: value.encode().hex(" "),
        lambda value: str(list(value.encode())),
        lambda value: "\n".join(re.findall(".{1,10}", b64encode(value.encode()).decode())),
    ],
)
def test_a_result_is_recorded_without_its_secrets_in_escapes_or_lines(
    write: Callable[[str], str],
) -> None:
    value = "S3cretTokenValue9zQabcd"
    secrets = secrets_of("login", {"password": value})
    recorded = secrets.recorded(ToolResult({}, f"got {write(value)} back"))
    assert recorded is not None
    assert recorded.text.startswith(f"got {REDACTED}") or recorded.text == f"got [{REDACTED}] back"
    assert value[-4:] not in recorded.text


def test_a_short_secret_is_taken_out_where_it_is_a_word() -> None:
    call = secrets_of("login", {"password": "7a", "pin": 5})
    assert call.text("7a or 5? 7ab, 55") == f"{REDACTED} or {REDACTED}? 7ab, 55"


def test_a_long_secret_that_is_cut_in_its_middle_leaves_neither_end() -> None:
    value = "".join(chr(97 + n * n % 26) + str(n) for n in range(60))
    call = secrets_of("login", {"password": value})
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(int).validate_python(value)
    text = call.text(f"{raised.value} {reprlib.repr(value)}")
    assert f"input_value='{REDACTED}...{REDACTED}'" in text
    assert value[:9] not in text
    assert value[-9:] not in text


def test_secrets_that_are_in_each_others_places_do_not_multiply() -> None:
    parts = [*"redacted[] ", "[red", "acte", "cted]", REDACTED, "\ue000"]
    call = of_schema({"items": {"writeOnly": True}}, parts * 5)
    assert len(call.text(f"{REDACTED} red acted " * 50)) < 10_000


def test_more_secrets_than_are_looked_for_leave_no_text() -> None:
    call = of_schema({"items": {"writeOnly": True}}, [f"hunter{n}" for n in range(101)])
    assert call.text("hunter7 and what else") == REDACTED


@given(
    arguments=st.dictionaries(st.sampled_from([*LOGIN.input_schema["properties"], "x"]), anything)
)
def test_no_value_stops_the_search(arguments: dict[str, Any]) -> None:
    call = secrets_of("login", {**arguments, "pin": 10**5_000})
    assert isinstance(call.text("a text"), str)


def test_a_failure_repeats_no_secret_and_a_result_is_the_tools_own() -> None:
    call = secrets_of("login", {"password": "not_found"})
    failure = ToolResult.failure(
        InvalidArgumentsError("not_found is weak", suggestions=["not_found"], next_actions=["Go."])
    )
    told = call.mask_failure(failure)
    assert told.structured == {
        "error_type": "invalid_arguments",
        "message": f"{REDACTED} is weak",
        "suggestions": [REDACTED],
        "next_actions": ["Go."],
    }
    assert "not_found" not in told.text
    result = ToolResult({"result": "not_found"}, "not_found")
    assert call.mask_failure(result) is result
    assert call.recorded(result) == replace(result, text=REDACTED)


@pytest.mark.parametrize(
    "wrong",
    [
        {"password": ["hunter2"]},
        {"pin": "hunter2"},
        {"api_key": ["hunter2"]},
        {"account": "hunter2"},
        {"account": {"user": "ann", "password": ["hunter2"]}},
        {"account": '{"user": "ann", "password": ["hunter2"]}'},
        {"either": ["hunter2"]},
        {"accounts": ["hunter2"]},
        {"accounts": {"home": ["hunter2"]}},
        {"pair": "hunter2"},
        {"pair": ["ann", ["hunter2"]]},
        {"node": {"children": [{"key": ["hunter2"]}]}},
        {"sealed": "hunter2"},
        {"typed": ["hunter2"]},
        {"named": "hunter2"},
        {"pasword": "hunter2"},
    ],
    ids=str,
)
def test_what_is_wrong_is_told_without_a_secret(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        LOGIN.validate(wrong)
    assert next(iter(wrong)) in refused.value.message or "token" in refused.value.message
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize("name", ["call_tool", "call_tools"])
def test_what_is_wrong_with_a_call_within_a_call_is_told_without_its_arguments(name: str) -> None:
    spec = TOOLS[name]
    text = '{"password": "hunter2"'
    one = {"name": "login", "arguments": text}
    for wrong in (one, {"calls": [one]}, {"calls": text}, {"calls": [text]}):
        with pytest.raises(InvalidArgumentsError) as refused:
            spec.validate(wrong)
        assert "hunter2" not in refused.value.message


def test_a_secret_is_listed_as_one_without_its_default() -> None:
    listed = LOGIN.input_schema["properties"]
    assert listed["password"] == {"type": "string", "writeOnly": True, "format": "password"}
    assert listed["pin"] == {"type": "integer", "writeOnly": True}
    assert listed["token"] == {"type": "string", "writeOnly": True}
    assert listed["word"] == {"type": "string", "format": "password"}
    assert LOGIN.input_schema["$defs"]["Sealed"]["properties"]["wax"]["writeOnly"] is True
    assert LOGIN.input_schema["$defs"]["Node"]["properties"]["key"]["writeOnly"] is True


def test_what_validation_made_of_a_secret_is_not_shown_and_a_default_neither() -> None:
    given = {"user": "ann", "account": ANN}
    shown = secrets_of("login", given).mask_validated(LOGIN.validate(given))
    assert {name: value for name, value in shown.items() if value is not None} == {
        "user": "ann",
        "account": HIDDEN,
        "token": REDACTED,
        "word": REDACTED,
    }
