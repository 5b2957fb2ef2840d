"""Classes that the shapes of several themes are about."""

import enum
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import anyio
from pydantic import BaseModel, Field

ItemT = TypeVar("ItemT")


class Colour(enum.Enum):
    """Values that differ from the names."""

    RED = "#f00"


class Level(enum.IntEnum):
    """Numbers."""

    LOW = 1
    HIGH = 2


class Page(BaseModel, Generic[ItemT]):
    """Some items of many."""

    items: list[ItemT]


class Pair(NamedTuple):
    """Two parts."""

    left: int
    right: str = "r"


class Place(BaseModel):
    """A place on the map."""

    town: str = Field(description="Name of the town.")


@dataclass
class Point:
    """A place in the plane."""

    x: int
    y: int = 0


class Service:
    """Has methods of every kind."""

    def __init__(self, name: str) -> None:
        self.name = name

    def greet(self, who: str) -> str:
        """Greets somebody."""
        return f"{self.name} greets {who}"

    async def wave(self, who: str) -> str:
        """Waves to somebody."""
        await anyio.lowlevel.checkpoint()
        return f"{self.name} waves to {who}"

    @classmethod
    def make(cls, who: str) -> str:
        """Names the class."""
        return f"{cls.__name__} {who}"

    @staticmethod
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    def __call__(self, who: str) -> str:
        """Calls somebody."""
        return f"{self.name} calls {who}"
