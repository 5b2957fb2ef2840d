"""What the tests of tool retrieval share: some tools, and the parts of an index."""

import pytest

from tools.retrieval.models import ToolRecord
from tools.retrieval.vectors import DensePart, bundled_parts


@pytest.fixture
def parts() -> tuple[DensePart, ...]:
    return bundled_parts()


@pytest.fixture
def tools() -> list[ToolRecord]:
    return [
        ToolRecord(
            tool_id="web_search",
            name="web_search",
            description="Search the internet for current information on any topic",
            tags=("Search", "web"),
            capabilities=("keyword search", "news lookup"),
        ),
        ToolRecord(
            tool_id="mail__send_email",
            name="mail__send_email",
            description="Compose and send an email to one or more recipients",
            tags=("communication", "web"),
            server="mail",
            aliases=("post_letter",),
            parameters={"properties": {"attachment": {"description": "A spreadsheet to add"}}},
        ),
        ToolRecord(
            tool_id="getCurrentWeather",
            name="getCurrentWeather",
            description="Temperature, rain and wind of a place",
        ),
        ToolRecord(
            tool_id="execute_sql",
            name="execute_sql",
            description="Run parameterised queries against a relational database",
            tags=("database",),
        ),
        ToolRecord(tool_id="calculator", name="calculator", description="Adds and multiplies"),
        ToolRecord(tool_id="查询天气", name="查询天气", description="查询一个城市的天气预报"),
    ]
