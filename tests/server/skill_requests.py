"""The requests of hosts of skills, as a client of the SDK sends them."""

from typing import Literal

import mcp_types as types
from pydantic import ConfigDict

from server.mcp.browsing.skill_view import ReadParams, SkillParams

__all__ = ["Answer", "DirectoryRead", "SkillsGet", "SkillsList"]


class Answer(types.Result):
    """Whatever is answered, as it is."""

    model_config = ConfigDict(extra="allow")


class SkillsList(types.Request[types.PaginatedRequestParams, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"


class SkillsGet(types.Request[SkillParams, Literal["skills/get"]]):
    method: Literal["skills/get"] = "skills/get"


class DirectoryRead(types.Request[ReadParams, Literal["resources/directory/read"]]):
    method: Literal["resources/directory/read"] = "resources/directory/read"
