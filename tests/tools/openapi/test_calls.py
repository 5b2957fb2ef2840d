"""Calls of an API's tools, in the whole product, against a site on loopback."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from storage.approvals import ApprovalStore

SHOP = """
openapi: 3.0.3
info: {title: Shop, version: '1'}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
  schemas:
    Item:
      type: object
      required: [name, id]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string}
        note: {type: string, nullable: true}
        price: {type: number, minimum: 0, exclusiveMinimum: true}
        parts: {type: array, items: {$ref: '#/components/schemas/Item'}}
security: [{key: []}]
paths:
  /items:
    get:
      operationId: list_items
      summary: Lists the herons of the shop
      tags: [items]
      parameters:
        - {name: q, in: query, schema: {type: string}}
        - {name: 'filter[kind]', in: query, schema: {type: array, items: {type: string}}}
        - {name: X-Key, in: header, schema: {type: string}}
    post:
      operationId: add_item
      tags: [items]
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}
  /items/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {operationId: get_item, security: []}
    delete: {operationId: items/delete}
    put:
      operationId: put_photo
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema:
              type: object
              required: [photo]
              properties:
                photo: {type: string, format: binary}
                title: {type: string}
  /keys:
    post:
      operationId: add_key
      requestBody:
        required: true
        content:
          application/x-www-form-urlencoded:
            schema:
              type: object
              required: [key]
              properties:
                key: {type: string, format: password, minLength: 20}
                scopes: {type: array, items: {type: string}}
            encoding: {scopes: {style: deepObject, explode: true}}
  /agents/{id}?beta=true:
    get:
      operationId: get_agent
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: q, in: query, schema: {type: integer}}
"""


@pytest.fixture
def described(tmp_path: Path) -> Path:
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP)
    return path


@pytest.fixture
def open_shop(open_crib: Callable[..., Any], site: Any, described: Path) -> Callable[..., Any]:
    """Opens the product with the shop, whose site is on loopback."""

    def opened(*allow: str, **more: Any) -> Any:
        api = {"description": str(described), "url": f"http://{site.address}/v1"}
        api |= more.pop("api", {})
        settings = {"requests__private": [site.address], "policy__allow": list(allow), **more}
        return open_crib(openapi={"shop": api}, **settings)

    return opened


@pytest.fixture
async def shop(open_shop: Callable[..., Any]) -> AsyncIterator[Any]:
    async with open_shop("source:openapi:shop") as crib:
        yield crib


async def test_parameters_go_where_the_description_says(shop: Any, site: Any) -> None:
    await shop.failure("shop__list_items", q="a&b=c#d/ü", filter_kind=["x", "y z"])
    (method, target, _, _) = site.asked[-1]
    assert method == "GET"
    assert target == "/v1/items?q=a%26b%3Dc%23d%2F%C3%BC&filter%5Bkind%5D=x&filter%5Bkind%5D=y%20z"


async def test_a_query_in_a_path_stays_one(shop: Any, site: Any) -> None:
    await shop.failure("shop__get_agent", id="a?b=c", q=1)
    assert site.asked[-1][1] == "/v1/agents/a%3Fb%3Dc?beta=true&q=1"


async def test_no_argument_leaves_its_place_in_the_path(shop: Any, site: Any) -> None:
    await shop.failure("shop__get_item", id="a/../b?c=d#e")
    assert site.asked[-1][1] == "/v1/items/a%2F..%2Fb%3Fc%3Dd%23e"
    for value in ("", ".", ".."):
        kind, text = await shop.failure("shop__get_item", id=value)
        assert (kind, "is not allowed in the path" in text) == ("invalid_arguments", True)
    assert len(site.asked) == 1


async def test_the_properties_of_a_body_are_arguments(shop: Any, site: Any) -> None:
    site.serve("/v1/items", '{"id": 7}', "application/json", 201, Location="/v1/items/7")
    answer = await shop.call("shop__add_item", name="heron", note=None, price=1.5)
    assert json.loads(site.asked[-1][3]) == {"name": "heron", "note": None, "price": 1.5}
    assert answer == {"status": 201, "headers": {"location": "/v1/items/7"}, "body": {"id": 7}}
    text = await shop.text("shop__add_item", name="heron")
    assert text == '201 Created\nlocation: /v1/items/7\n{"id":7}'


async def test_wrong_arguments_are_named_and_nothing_is_sent(shop: Any, site: Any) -> None:
    kind, text = await shop.failure("shop__add_item", nam="x", price=0, id=3, parts=[{"name": 1}])
    assert kind == "invalid_arguments"
    for said in (
        "`nam` is unknown; did you mean `name`?",
        "`id` is unknown",
        "`name` is missing.",
        "`price` is 0; send a number greater than 0.",
        "`parts[0].name` is 1; send a string.",
    ):
        assert said in text
    assert not site.asked


async def test_a_form_is_written_as_its_encoding_says(shop: Any, site: Any) -> None:
    await shop.failure("shop__add_key", key="x" * 19 + "&", scopes=["a b", "c"])
    assert site.asked[-1][2]["Content-Type"] == "application/x-www-form-urlencoded"
    assert site.asked[-1][3] == f"key={'x' * 19}%26&scopes[0]=a%20b&scopes[1]=c".encode()


async def test_a_refused_password_is_not_repeated(shop: Any, site: Any) -> None:
    kind, text = await shop.failure("shop__add_key", key="open-sesame-17")
    assert (kind, "open-sesame-17" in text, "`key`" in text) == ("invalid_arguments", False, True)
    recorded = shop.app.settings.audit_file.read_text()
    assert "add_key" in recorded
    assert "open-sesame-17" not in recorded


async def test_a_file_beneath_the_root_is_sent_and_no_other(
    shop: Any, site: Any, described: Path
) -> None:
    (shop.root / "a.png").write_bytes(b"\x89PNG\0")
    site.serve("/v1/items/1", "", status=204)
    answer = await shop.call("shop__put_photo", id="1", photo="a.png", title='"ü"')
    assert answer == {"status": 204, "headers": {}, "body": None}
    body = site.asked[-1][3]
    assert b'name="photo"; filename="a.png"\r\nContent-Type: application/octet-stream' in body
    assert b"\r\n\r\n\x89PNG\0\r\n" in body
    assert '\r\n\r\n"ü"\r\n'.encode() in body
    kind, _ = await shop.failure("shop__put_photo", id="1", photo=str(described))
    assert kind == "outside_sandbox"
    assert len(site.asked) == 1


async def test_only_the_fields_that_are_asked_for_are_answered(shop: Any, site: Any) -> None:
    items = [{"id": 1, "name": "a", "size": {"x": 1, "y": 2}}, {"id": 2, "name": "b"}]
    site.serve("/v1/items", json.dumps({"items": items, "total": 2}), "application/json")
    answer = await shop.call("shop__list_items", fields=["items.*.name", "items.size.x"])
    assert answer["body"] == {"items": [{"name": "a", "size": {"x": 1}}, {"name": "b"}]}
    answer = await shop.call("shop__list_items", fields=["nothing"])
    assert answer["body"] is None
    assert answer["note"] == "It has none of these fields. It has: items, total."


async def test_a_long_answer_is_kept_whole_and_its_rows_can_be_read(shop: Any, site: Any) -> None:
    items = [{"id": number, "name": f"item {number}"} for number in range(20_000)]
    site.serve("/v1/items", json.dumps({"items": items}), "application/json")
    text = await shop.text("shop__list_items")
    assert "20000 rows at $.body.items" in text
    handle = text.partition("handle='")[2][:17]
    rows = {"where": ["id = 19999"], "columns": ["name"]}
    found = await shop.call("read_result", handle=handle, rows=rows)
    assert found["parts"] == ['{"name":"item 19999"}']


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_arguments"),
        (401, "permission_denied"),
        (403, "permission_denied"),
        (404, "not_found"),
        (409, "conflict"),
        (422, "invalid_arguments"),
        (429, "rate_limited"),
        (418, "upstream_failed"),
        (503, "upstream_failed"),
    ],
)
async def test_a_failure_has_its_type_and_what_the_api_says(
    shop: Any, site: Any, status: int, kind: str
) -> None:
    site.serve("/v1/items/1", '{"error": "said"}' + "x" * 9_000, "application/json", status)
    found, text = await shop.failure("shop__get_item", id="1")
    assert found == kind
    assert f"GET http://{site.address}/v1/items/1 answered {status}" in text
    assert '{"error": "said"}' in text
    assert len(text) < 2_500


async def test_a_redirect_to_another_site_is_not_followed(shop: Any, site: Any) -> None:
    site.serve("/v1/items/1", "", status=302, Location="http://127.0.0.1:9/secret")
    kind, text = await shop.failure("shop__get_item", id="1")
    assert (kind, "http://127.0.0.1:9/secret" in text) == ("upstream_failed", True)


async def test_a_private_address_is_asked_only_where_the_settings_allow_it(
    open_shop: Callable[..., Any], site: Any
) -> None:
    async with open_shop("source:openapi:shop", requests__private=[]) as crib:
        kind, _ = await crib.failure("shop__get_item", id="1")
        assert kind == "permission_denied"
    assert not site.asked


async def test_rules_judge_a_call_by_its_method_host_and_path(
    open_shop: Callable[..., Any], site: Any
) -> None:
    rule = f"shop__*(GET http://{site.address}/v1/items/**)"
    denied = f"http_request(http://{site.address}/v1/items/2)"
    settings = {"policy__profile": "read-only", "policy__deny": [f"shop__*({denied[13:-1]})"]}
    site.serve("/v1/items/1", "{}", "application/json")
    async with open_shop(rule, **settings) as crib:
        assert (await crib.call("shop__get_item", id="1"))["status"] == 200
        for name in ("shop__items_delete", "shop__put_photo"):
            kind, _ = await crib.failure(name, id="1", **({"photo": "x"} if "put" in name else {}))
            assert kind == "permission_denied"
        kind, text = await crib.failure("shop__get_item", id="2")
        assert (kind, "denies" in text) == ("permission_denied", True)
        site.serve("/v1/items/1", "", status=302, Location="/v1/items/2")
        kind, _ = await crib.failure("shop__get_item", id="1")
        assert kind == "upstream_failed"
    assert [asked[1] for asked in site.asked] == ["/v1/items/1", "/v1/items/1"]


async def test_the_secret_of_the_settings_is_sent_and_never_shown(
    open_shop: Callable[..., Any], site: Any, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    key.chmod(0o600)
    secrets = {"key": {"file": str(key), "hosts": [site.address], "header": "X-Key"}}
    site.serve("/v1/items", '["0123456789abcdef"]', "application/json")
    site.serve("/v1/items/1", "{}", "application/json")
    async with open_shop("source:openapi:shop", api={"secret": "key"}, secrets=secrets) as crib:
        assert "X-Key" not in str(
            await crib.client.call_tool("describe_tool", {"name": "shop__list_items"})
        )
        answer = await crib.call("shop__list_items")
        assert site.asked[-1][2]["X-Key"] == "0123456789abcdef"
        assert answer["body"] == ["[secret:key]"]
        await crib.call("shop__get_item", id="1")  # which says that it needs none
        assert "X-Key" not in site.asked[-1][2]


async def test_the_tools_are_found_and_not_listed(open_shop: Callable[..., Any]) -> None:
    async with open_shop(surface=["lean"]) as crib:
        listed = [each.name for each in (await crib.client.list_tools()).tools]
        assert not any(name.startswith("shop__") for name in listed)
        assert "shop__list_items" in await crib.text("search_tools", query="herons of the shop")
        spec = crib.app.registry.find("shop__items_delete")
        assert (spec.destructive, sorted(spec.effects)) == (True, ["external", "write"])


async def test_a_surface_that_names_them_lists_them_from_the_start(
    open_shop: Callable[..., Any],
) -> None:
    async with open_shop(surface=["lean", "shop__get_item"]) as crib:
        listed = [each.name for each in (await crib.client.list_tools()).tools]
        assert [name for name in listed if name.startswith("shop__")] == ["shop__get_item"]


async def test_a_person_who_is_asked_sees_the_request(
    open_shop: Callable[..., Any], site: Any
) -> None:
    async with open_shop(approvals__wait_seconds=0) as crib:
        context = crib.app.context  # a client that cannot ask
        result = await crib.app.manager.execute("shop__items_delete", {"id": "7"}, context)
        assert result.structured["error_type"] == "approval_required"
        (waiting,) = ApprovalStore(crib.app.library.database).waiting()
        assert waiting.asked.shown == f"DELETE http://{site.address}/v1/items/7\nid: 7"
    assert not site.asked
