"""Converts RTF, notebooks, calendars and contact cards to readable text."""

from __future__ import annotations

import json
import quopri
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from storage.errors import UnreadableDocumentError
from storage.models import seconds_of
from storage.reading.content import LONGEST_TEXT, TOO_LONG, Content
from storage.reading.decode import decode, decode_marking

_RTF_TITLE = re.compile(r"\{\\title ([^{}\\]{1,300})\}")
_RTF_DATA = re.compile(rb"\{\\\*?\\?(?:pict|objdata)\b[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_MOST_OUTPUT = 5_000  # characters of one output of a notebook
_MOST_NAMES = 200


def read_rtf(data: bytes) -> Content:
    """Reads RTF, without its pictures."""
    from striprtf.striprtf import rtf_to_text

    source = _RTF_DATA.sub(b"", data).decode("latin-1")
    title = _RTF_TITLE.search(source)
    convert: Callable[..., str] = rtf_to_text  # it has few types
    text = convert(source, errors="replace")
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins pairs
    return Content(text.strip(), title[1] if title else "")


def read_notebook(data: bytes) -> Content:
    """Reads a Jupyter notebook: texts, code, and what the code printed."""
    notebook = json.loads(decode(data).text)
    if not isinstance(notebook, dict):
        raise UnreadableDocumentError(
            "It is not a notebook.", suggestions=("Rename it to .json, and add that.",)
        )
    sheets = notebook.get("worksheets") or [notebook]  # before version 4
    language = notebook.get("metadata", {}).get("kernelspec", {}).get("language") or "python"
    blocks = []
    for cell in (cell for sheet in sheets for cell in sheet.get("cells", [])):
        source = _joined(cell.get("source", cell.get("input"))).strip()
        if not source:
            continue
        kind = cell.get("cell_type")
        if kind == "heading":
            blocks.append(f"{'#' * min(int(cell.get('level', 1)), 6)} {source}")
        elif kind != "code":
            blocks.append(re.sub(r"\(data:[^)]*\)", "()", source))
        else:
            blocks.append(_fenced(source, language))
            blocks += map(_fenced, _outputs(cell))
    text = "\n\n".join(blocks)
    notes = (TOO_LONG,) if len(text) > LONGEST_TEXT else ()
    return Content(text[:LONGEST_TEXT], notes=notes)


def _outputs(cell: dict[str, object]) -> Iterator[str]:
    outputs = cell.get("outputs")
    for each in outputs if isinstance(outputs, list) else ():
        data = each.get("data", each)
        text = _joined(each.get("text") or data.get("text/plain") or data.get("text")).strip()
        if each.get("output_type") in {"error", "pyerr"}:
            text = f"{each.get('ename', '')}: {each.get('evalue', '')}"
        if text:
            yield text[:_MOST_OUTPUT]


def _joined(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _fenced(code: str, language: str = "") -> str:
    ticks = max((len(run) for run in re.findall(r"`{3,}", code)), default=2) + 1
    return f"{'`' * ticks}{language}\n{code}\n{'`' * ticks}"


@dataclass(frozen=True, slots=True)
class _Line:
    """A content line of iCalendar (RFC 5545) or vCard (RFC 6350)."""

    name: str
    parameters: dict[str, str]
    raw: str

    @property
    def values(self) -> list[str]:
        """The parts of the value between its semicolons."""
        parts = re.split(r"(?<!\\);", self.raw)
        return [re.sub(r"\\(.)", _unescape, part).strip() for part in parts]

    @property
    def value(self) -> str:
        """The whole value."""
        return re.sub(r"\\(.)", _unescape, self.raw).strip()


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] in "nN" else match[1]


_CONTENT_LINE = re.compile(
    r"(?:[\w-]+\.)?([\w-]+)((?:;[^:;\"]*(?:\"[^\"]*\"[^:;\"]*)*)*):(.*)", re.DOTALL
)


def _content_lines(data: bytes) -> Iterator[_Line]:
    """Yields the lines, unfolded and decoded; embedded files are left out."""
    text = decode_marking(data).text.replace("\r\n", "\n").replace("\r", "\n")
    pending = ""
    for line in re.sub(r"\n[ \t]", "", text).split("\n"):
        pending += line
        if pending.endswith("=") and "QUOTED-PRINTABLE" in pending[:200].upper():
            pending = pending[:-1]  # vCard 2.1 folds lines like this
            continue
        match, pending = _CONTENT_LINE.match(pending), ""
        if match is None:
            continue
        given = [each.partition("=") for each in match[2].split(";") if each]
        parameters = {
            (name if equals else "TYPE").upper(): (value if equals else name).strip('"')
            for name, equals, value in given
        }
        codings = {name.upper() for name, _, _ in given} | {parameters.get("ENCODING", "").upper()}
        value = match[3]
        if "QUOTED-PRINTABLE" in codings:
            raw = quopri.decodestring(value.encode())
            value = raw.decode("utf-8", "replace")
            with suppress(LookupError):
                value = raw.decode(parameters.get("CHARSET", "utf-8"), "replace")
        if codings.isdisjoint({"B", "BASE64"}) and not value.startswith("data:"):
            yield _Line(match[1].upper(), parameters, value)


def _components(data: bytes, *kinds: str) -> Iterator[list[_Line]]:
    """Yields the lines of each component of these kinds, without those of inner components."""
    inside: list[tuple[str, list[_Line]]] = []
    for line in _content_lines(data):
        if line.name == "BEGIN":
            inside.append((line.value.upper(), []))
        elif line.name == "END" and inside:
            kind, lines = inside.pop()
            if kind in kinds:
                yield lines
        elif inside:
            inside[-1][1].append(line)
    yield from (lines for kind, lines in inside if kind in kinds)  # the file was cut off


def _section(heading: str, shown: Iterable[str], lines: list[_Line], text: str) -> str:
    """Formats a component: a heading, its properties line by line, and its texts."""
    texts = [line.value for line in lines if line.name == text]
    return "\n\n".join(filter(None, (f"## {heading}", "  \n".join(filter(None, shown)), *texts)))


def _first(lines: list[_Line], name: str) -> str:
    return next((" ".join(line.value.split()) for line in lines if line.name == name), "")


_CALENDAR_LABELS = dict(
    label.split("=")
    for label in """
    DTSTART=Start DTEND=End DURATION=Duration DUE=Due COMPLETED=Completed RRULE=Repeats
    STATUS=Status LOCATION=Where ORGANIZER=Organizer ATTENDEE=Attendee CONTACT=Contact
    CATEGORIES=Categories URL=URL COMMENT=Comment
    """.split()  # noqa: SIM905  # a list of names reads best as text
)


def read_calendar(data: bytes) -> Content:
    """Reads a calendar: each event, task or journal entry is a section."""
    entries = list(_components(data, "VEVENT", "VTODO", "VJOURNAL"))
    sections = [
        _section(_first(each, "SUMMARY") or "Event", map(_calendar_line, each), each, "DESCRIPTION")
        for each in entries
    ]
    single = entries[0] if len(entries) == 1 else []
    calendars = list(_components(data, "VCALENDAR"))
    title = next((name for each in calendars if (name := _first(each, "X-WR-CALNAME"))), "")
    starts = [_moment(line)[1] for line in single if line.name == "DTSTART"]
    names = (line.parameters.get("CN", "") for lines in entries for line in lines)
    return Content(
        "\n\n".join(sections),
        title or _first(single, "SUMMARY"),
        event_time=next(iter(starts), None),
        entities=tuple(dict.fromkeys(filter(None, names)))[:_MOST_NAMES],
        metadata={"events": len(sections)},
    )


def _calendar_line(line: _Line) -> str:
    label, value = _CALENDAR_LABELS.get(line.name, ""), line.value
    if line.name in {"ORGANIZER", "ATTENDEE"}:
        value = re.sub(r"^mailto:", "", value, flags=re.IGNORECASE)
        if name := line.parameters.get("CN"):
            value = f"{name} <{value}>"
    elif line.name.startswith("D"):
        value = _moment(line)[0]
    return f"{label}: {value}" if label else ""


_MOMENT = re.compile(r"\d{8}(?:T(\d{6})(Z?))?", re.ASCII)


def _moment(line: _Line) -> tuple[str, float | None]:
    """Returns a time as a reader would write it, and as Unix seconds."""
    match = _MOMENT.fullmatch(line.value)
    if match is None:
        return line.value, None
    clock, is_utc = match.groups()
    zone = None
    with suppress(ValueError, OSError, LookupError):  # a zone that only the calendar defines
        zone = ZoneInfo(line.parameters.get("TZID", "")) if clock else None
    try:
        when, seconds = datetime.fromisoformat(line.value), seconds_of(line.value, zone)
    except (ValueError, OverflowError):  # no day of the calendar
        return line.value, None
    local = f"{when:%Y-%m-%d %H:%M}" if clock else f"{when:%Y-%m-%d}"
    shown = "UTC" if is_utc else line.parameters.get("TZID", "") if clock else ""
    return f"{local} {shown}".strip(), seconds


_CARD_LABELS = dict(
    label.split("=")
    for label in """
    NICKNAME=Nickname ORG=Organization TITLE=Title ROLE=Role EMAIL=Email TEL=Phone ADR=Address
    BDAY=Birthday ANNIVERSARY=Anniversary URL=URL IMPP=Chat CATEGORIES=Categories RELATED=Related
    """.split()  # noqa: SIM905  # a list of names reads best as text
)
_KINDS = {"home", "work", "cell", "fax", "mobile", "iphone", "main"}


def read_cards(data: bytes) -> Content:
    """Reads contact cards: each person is a section."""
    cards = {}
    for lines in _components(data, "VCARD"):
        named = next((each.values for each in lines if each.name == "N"), [])
        family, given, *_ = [*named, "", ""]
        name = _first(lines, "FN") or f"{given} {family}".strip() or _first(lines, "ORG")
        name = name or "Contact"
        cards[_section(name, map(_card_line, lines), lines, "NOTE")] = name
    names = tuple(dict.fromkeys(cards.values()))
    return Content(
        "\n\n".join(cards),
        names[0] if len(cards) == 1 else "",
        entities=names[:_MOST_NAMES],
        metadata={"contacts": len(cards)},
    )


def _card_line(line: _Line) -> str:
    label = _CARD_LABELS.get(line.name)
    value = ", ".join(" ".join(each.split()) for each in line.values if each)
    if not label or not value:
        return ""
    kinds = re.split(r"\W+", line.parameters.get("TYPE", "").lower())
    kind = next((f" ({kind})" for kind in kinds if kind in _KINDS), "")
    return f"{label}{kind}: {re.sub(r'^(?:tel|mailto):', '', value)}"
