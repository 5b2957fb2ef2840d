"""A server of an author's own, as the tests start it."""

from __future__ import annotations

from typing import Annotated, Literal

import anyio
from pydantic import BaseModel, Field

from server.own import serve
from tools.authoring import Message, RequestContext, prompt, resource, tool


class Yield(BaseModel):
    """What a bed gave."""

    plant: str
    kilograms: float


@tool
def harvest(plant: str, beds: Annotated[int, Field(ge=1)] = 1) -> Yield:
    """Harvests a plant."""
    print("noise")  # noqa: T201  # it must not reach the client
    return Yield(plant=plant, kilograms=2.5 * beds)


@tool
async def visit(context: RequestContext, plant: str) -> float:
    """Asks how many beds there are, and harvests them."""
    beds = await context.ask(int, "How many beds?")
    await context.report_progress(1, 2, "asked")
    result = await context.call("harvest", {"plant": plant, "beds": beds})
    kilograms: float = result.structured["kilograms"]
    return kilograms


@tool(timeout=0.05)
async def hibernate() -> None:
    """Waits for spring."""
    await anyio.sleep_forever()


@tool
def weed(bed: str) -> None:
    """Weeds a bed that is not there."""
    raise FileNotFoundError(f"no such bed: {bed}")


@tool
async def nest(context: RequestContext) -> str:
    """Calls itself."""
    return (await context.call("nest", {})).text


@resource("garden://{bed}")
def bed_plan(bed: Literal["B1", "B2"]) -> str:
    """Tells what grows in a bed."""
    return f"Kale in {bed}."


@prompt()
def plan(season: str) -> list[Message]:
    """Plans a season."""
    return [Message("user", f"Plan the {season}.")]


@tool
async def sow(context: RequestContext, bed: str) -> None:
    """Sows in a bed, so that its plan changes."""
    await context.changed(f"garden://{bed}")


if __name__ == "__main__":
    serve(harvest, visit, hibernate, weed, nest)
