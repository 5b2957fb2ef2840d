"""The to-do list of a session: the agent's tasks and their progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import AliasChoices, ConfigDict, Field

from storage.agent.todos import Todo, TodoStatus
from tools.answers.plans import ItemId, check_distinct, checklist_line
from tools.core.context import RequestContext
from tools.core.result import ToolModel
from tools.core.spec import Effect, ToolScope, tool

MOST = 200  # limit on the to-dos of a list
CHARACTERS = 1_000  # limit on the text of a to-do
_COUNTED = {"completed": "done", "in_progress": "in progress", "pending": "pending"}


_Text = Annotated[str, Field(max_length=CHARACTERS, pattern=r"\S")]


class NewTodo(ToolModel):
    """A to-do as sent.

    Attributes:
        id: Its ID in the list; generated if omitted.
        content: What is to be done.
        status: Its progress.
        active_form: Its wording while it is in progress.
    """

    model_config = ConfigDict(extra="forbid")

    id: Annotated[ItemId | None, Field(description="Keep it; made if left out")] = None
    content: Annotated[_Text, Field(description="What is to be done")]
    status: Literal["pending", "in_progress", "completed"]
    active_form: Annotated[
        _Text | None,
        Field(
            validation_alias=AliasChoices("active_form", "activeForm"),
            description="Its wording while in progress: Writing the tests",
        ),
    ] = None


class ListedTodo(ToolModel):
    """A to-do as stored.

    Attributes:
        id: Its ID in the list.
        content: What is to be done.
        status: Its progress.
        active_form: Its wording while it is in progress; empty if not given.
    """

    id: str
    content: str
    status: Literal["pending", "in_progress", "completed"]
    active_form: str

    def to_text(self) -> str:
        """Formats it as one line of a checklist."""
        is_active = self.status == "in_progress" and self.active_form
        said = self.active_form if is_active else self.content
        return checklist_line(self.status, self.id, said)


class TodoList(ToolModel):
    """The list of a session.

    Attributes:
        todos: In their order.
        counts: How many there are of each status.
    """

    todos: list[ListedTodo]
    counts: dict[str, int]

    @classmethod
    def of(cls, todos: Sequence[Todo]) -> TodoList:
        """Converts a stored list."""
        tally = Counter(each.status for each in todos)
        return cls(
            todos=list(map(ListedTodo.from_attributes, todos)),
            counts={status: tally[status] for status in get_args(TodoStatus)},
        )

    def to_text(self) -> str:
        """Formats a checklist with its counts."""
        if not self.todos:
            return "Nothing on the list of this session."
        told = ", ".join(
            f"{self.counts[status]} {said}"
            for status, said in _COUNTED.items()
            if self.counts[status]
        )
        return "\n".join([f"To do ({told}):", *(each.to_text() for each in self.todos)])


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    idempotent=True,
    aliases=("todo_write",),
    tags=("files", "todo"),
    capabilities=("plan the steps of a task and keep track of them",),
)
def todo(
    context: RequestContext,
    todos: Annotated[
        list[NewTodo], Field(max_length=MOST, description="The whole list; empty clears it")
    ],
) -> TodoList:
    """Replaces this session's to-do list as a whole: send those that stay too, with their ids."""
    check_distinct("todos", (each.id for each in todos))
    new = [Todo(each.id or "", each.content, each.status, each.active_form or "") for each in todos]
    return TodoList.of(context.shelf().todos.replace(context.session_id, new))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("files", "todo"),
    capabilities=("read the to-do list of this session",),
)
def read_todos(context: RequestContext) -> TodoList:
    """Reads this session's to-do list."""
    return TodoList.of(context.shelf().todos.listed(context.session_id))
