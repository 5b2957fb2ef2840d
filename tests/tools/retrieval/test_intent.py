import pytest

from tools.retrieval import SearchQuery, ToolIndex, ToolRecord
from tools.retrieval.intent import actions_of_tool, name_values, wanted_actions

SIBLINGS = {
    "stage_files": "Adds files to the next commit.",
    "create_table": "Creates a table in the database.",
    "drop_table": "Deletes a table from the database.",
    "list_tables": "Lists the tables of the database.",
    "run_sql": "Counts and sums rows.",
    "read_image": "Reads an image.",
    "delete_image": "Deletes an image.",
    "close_tab": "Closes a tab of the browser.",
    "open_tab": "Opens a tab of the browser.",
    "make_directory": "Creates a directory.",
    "send_mail": "Sends an email.",
    "read_mail": "Shows an email.",
    "get_url": "Downloads a web page.",
}


@pytest.fixture
def index() -> ToolIndex:
    """Tools with the same nouns and different verbs, found by their words."""
    index = ToolIndex(embedders=())
    for name, description in SIBLINGS.items():
        index.add_tool(ToolRecord(tool_id=name, name=name, description=description))
    return index


@pytest.mark.parametrize(
    ("request_text", "tool_id"),
    [
        ("Add a table for suppliers to the database", "create_table"),
        ("Please remove the suppliers table from our database", "drop_table"),
        ("Which tables does the database have?", "list_tables"),
        ("How many rows does the database have?", "run_sql"),
        ("I need you to show me that image", "read_image"),
        ("Erase the picture", "delete_image"),
        ("Could you open another browser tab?", "open_tab"),
        ("Make a folder", "make_directory"),
        ("Let me see logo.png", "read_image"),
        ("Send the report to ann@example.com", "send_mail"),
        ("Get me https://example.com/a.png", "get_url"),
    ],
)
def test_of_tools_for_one_thing_the_one_that_does_what_is_wanted_comes_first(
    index: ToolIndex, request_text: str, tool_id: str
) -> None:
    found = index.search(SearchQuery(query_text=request_text, top_k=3))
    assert found[0].tool.tool_id == tool_id


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("open src/app.py and b.JPG", "open file py and image file jpg"),
        ("tell #general and a@b.org", "tell channel and email address"),
        ("see example.com/x and https://x.y/z.png", "see web page URL and web page URL"),
        ("Version 3.11 of i.e. Node.js's x.y.z #1", "Version 3.11 of i.e. file js's x.y.z #1"),
        ("what is at 48.13, -11.5?", "what is at coordinates?"),
        ("merge PR 7 and list open prs", "merge pull request 7 and list open pull requests"),
        ("Mr 7 approved MR 7", "Mr 7 approved merge request 7"),
        ("no values here", "no values here"),
        ("." * 5_000, "." * 5_000),
    ],
)  # fmt: skip
def test_values_in_a_request_are_read_as_what_they_are(text: str, named: str) -> None:
    assert name_values(text) == named


def test_tools_of_a_server_that_the_request_names_come_first() -> None:
    index = ToolIndex(embedders=())
    for server in ("board", "my-wiki", ""):
        name = f"{server}__create_page" if server else "create_page"
        text = f"Creates a page of {server or 'text'} for all to read."
        index.add_tool(ToolRecord(tool_id=name, name=name, description=text, server=server))
    index.add_tool(ToolRecord(tool_id="wiki", name="about_wiki", description="My wiki pages."))

    def first(text: str) -> str:
        return index.search(SearchQuery(query_text=text))[0].tool.tool_id

    assert first("create a page in my wiki") == "my-wiki__create_page"
    assert first("create a page on the board") == "board__create_page"
    index.remove_tool("my-wiki__create_page")
    assert first("create a page in my wiki") != "my-wiki__create_page"


@pytest.mark.parametrize(
    ("name", "description", "like"),
    [
        ("API-post-page", "Pages | Create a page.", "create_page"),
        ("patch_page", "Update a page.", "update_page"),
        ("post_message", "For all to read.", "send_message"),
        ("slack_post_message", "Get rid of a message.", "send_message"),
    ],
)
def test_a_method_of_http_in_a_name_says_less_than_the_description(
    name: str, description: str, like: str
) -> None:
    record = ToolRecord(tool_id=name, name=name, description=description)
    other = ToolRecord(tool_id=like, name=like)
    assert actions_of_tool(record) & actions_of_tool(other)


def test_a_question_for_one_thing_is_not_one_for_a_list() -> None:
    assert wanted_actions("What time is it?") == wanted_actions("What is the time?")
    assert wanted_actions("What address has it?") != wanted_actions("What addresses has it?")
