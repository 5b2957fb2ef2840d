"""Docstrings: in every style, whole and in part."""

from collections.abc import Callable
from typing import Annotated, Any

from benchmarks.function_shapes.checks import (
    answers,
    describes,
    gets,
    leaves_out,
    mentions,
    says,
    takes,
)
from benchmarks.function_shapes.shape import Options, Theme
from benchmarks.function_shapes.subjects import Place

Function = Callable[..., Any]

DOCSTRINGS = Theme("texts")


@DOCSTRINGS.shape(
    "Google docstring",
    says("Tells the weather."),
    leaves_out("Args:", "Name of the city"),
    describes("city", "Name of the city, such as Bern: or another."),
    describes("days", "How many days, over two lines."),
)
def google(city: str, days: int = 1) -> str:
    """Tells the weather.

    Args:
        city: Name of the city, such as Bern: or another.
        days (int, optional): How many days,
            over two lines.
    """
    return f"{city} {days}"


@DOCSTRINGS.shape(
    "NumPy docstring",
    says("Tells the weather."),
    leaves_out("Parameters", "-----", "Name of the city"),
    describes("city", "Name of the city."),
    describes("days", "How many days, over two lines."),
)
def numpydoc(city: str, days: int = 1) -> str:
    """Tells the weather.

    Parameters
    ----------
    city : str
        Name of the city.
    days : int, optional
        How many days,
        over two lines.
    """
    return f"{city} {days}"


@DOCSTRINGS.shape(
    "reST docstring",
    says("Tells the weather."),
    leaves_out(":param", ":type", "Name of the city"),
    describes("city", "Name of the city."),
    describes("days", "How many days, over two lines."),
)
def sphinx(city: str, days: int = 1) -> str:
    """Tells the weather.

    :param city: Name of the city.
    :param int days: How many days,
        over two lines.
    :type city: str
    """
    return f"{city} {days}"


@DOCSTRINGS.shape(
    "Epytext docstring",
    says("Tells the weather."),
    leaves_out("@param", "@type", "Name of the city"),
    describes("city", "Name of the city."),
    describes("days", "How many days, over two lines."),
)
def epytext(city: str, days: int = 1) -> str:
    """Tells the weather.

    @param city: Name of the city.
    @type city: str
    @param days: How many days,
        over two lines.
    """
    return f"{city} {days}"


@DOCSTRINGS.shape(
    "partly documented",
    takes("city", "days", "unit"),
    describes("city", "Name of the city."),
    describes("days", ""),
    describes("unit", "Of the temperature."),
)
def partly(city: str, days: int, unit: Annotated[str, "Of the temperature."]) -> str:  # the shape
    """Tells the weather.

    Args:
        city: Name of the city.
    """
    return f"{city} {days} {unit}"


@DOCSTRINGS.shape(
    "paragraphs and other sections",
    says("Tells the weather.", "Asks three services.", "weather('Bern')", "slow in winter"),
    leaves_out("Args:", "Name of the city"),
)
def sections(city: str) -> str:
    """Tells the weather.

    Asks three services.

    Args:
        city: Name of the city.

    Note:
        It is slow in winter.

    Example:
        weather('Bern')
    """
    return city


@DOCSTRINGS.shape("a returns section", mentions("Degrees of the warmest hour"))
def returns_section(city: str) -> float:
    """Tells the weather.

    Args:
        city: Name of the city.

    Returns:
        Degrees of the warmest hour.
    """
    return float(len(city))


@DOCSTRINGS.shape("a raises section", says("If no such city is known"))
def raises_section(city: str) -> float:
    """Tells the weather.

    Args:
        city: Name of the city.

    Raises:
        ValueError: If no such city is known.
    """
    return float(len(city))


@DOCSTRINGS.shape(
    "a docstring about a parameter that is not there",
    takes("city"),
    describes("city", "Name of the city."),
    gets({"city": "Bern"}, "Bern"),
)
def stale(city: str) -> str:
    """Tells the weather.

    Args:
        city: Name of the city.
        land: Gone since long.
    """
    return city


@DOCSTRINGS.shape(
    "other alphabets and signs",
    says("Sagt das Wetter: {heute} → 20 °C, 天气 100 %."),
    describes("ort", "Name des Ortes, z. B. «Zürich» oder 北京."),
)
def unicode_texts(ort: str) -> str:
    """Sagt das Wetter: {heute} → 20 °C, 天气 100 %.

    Args:
        ort: Name des Ortes, z. B. «Zürich» oder 北京.
    """
    return ort


@DOCSTRINGS.shape(
    "a docstring of one line with a colon",
    says("Weather: tells it, e.g. http://example.com: 80."),
    gets({"city": "Bern"}, "Bern"),
)
def colon(city: str) -> str:
    """Weather: tells it, e.g. http://example.com: 80."""
    return city


@DOCSTRINGS.shape(
    "a Google docstring that says Arguments, with types that have colons and lists",
    says("Tells the weather."),
    leaves_out("Arguments:"),
    describes("limits", "Bounds, by name."),
    describes("mode", "One of: - fast - slow"),
)
def arguments_section(limits: dict[str, int], mode: str = "fast") -> str:
    """Tells the weather.

    Arguments:
        limits (dict[str, int]): Bounds, by name.
        mode: One of:
            - fast
            - slow
    """
    return f"{limits} {mode}"


@DOCSTRINGS.shape(
    "returns and raises sections in NumPy style",
    mentions("Degrees of the warmest hour", "If no such city is known"),
)
def numpy_sections(city: str) -> float:
    """Tells the weather.

    Parameters
    ----------
    city : str
        Name of the city.

    Returns
    -------
    float
        Degrees of the warmest hour.

    Raises
    ------
    ValueError
        If no such city is known.
    """  # noqa: D416  # NumPy's sections have no colon
    return float(len(city))


@DOCSTRINGS.shape(
    "returns and raises sections in reST style",
    mentions("Degrees of the warmest hour", "If no such city is known"),
)
def sphinx_sections(city: str) -> float:
    """Tells the weather.

    :param city: Name of the city.
    :returns: Degrees of the warmest hour.
    :raises ValueError: If no such city is known.
    """
    return float(len(city))


@DOCSTRINGS.shape("a returns section of a model's", mentions("The place that is nearest"))
def returns_model(city: str) -> Place:
    """Finds a place.

    Args:
        city: Where to begin.

    Returns:
        The place that is nearest.
    """
    return Place(town=city)


@DOCSTRINGS.shape(
    "a docstring of parameters only", leaves_out("Args:"), describes("city", "Name of the city.")
)
def parameters_only(city: str) -> str:
    """
    Args:
        city: Name of the city.
    """  # noqa: D205, D212  # the shape
    return city


@DOCSTRINGS.shape_made(
    "a class that documents its constructor's parameters",
    says("A watch over a town."),
    leaves_out("Args:"),
    describes("town", "Where to look."),
    answers(lambda _value: True, {"town": "Bern"}),
    options=Options(name="watch"),
)
def class_texts() -> Function:
    class Watch:
        """A watch over a town.

        Args:
            town: Where to look.
        """

        def __init__(self, town: str) -> None:
            self.town = town

    return Watch
