from __future__ import annotations

from xml.etree import ElementTree as ET

from tools.data.answers.runs import RunReport, ShownRow, StepReport, WrittenFile
from tools.data.running.reports import reconciled, to_markdown, to_svg

SOURCE = WrittenFile(path="rows.jsonl", size=10, sha256="0" * 64)


def step(operator: str, rows_in: int, rows_out: int) -> StepReport:
    return StepReport(
        operator=operator, rows_in=rows_in, rows_out=rows_out, seconds=0, failed=0, errors=[]
    )


def report(*steps: StepReport) -> RunReport:
    return RunReport(
        dry_run=False,
        engine="direct",
        rows_in=steps[0].rows_in,
        rows_out=steps[-1].rows_out,
        steps=list(steps),
        kept=[],
        dropped=[ShownRow(row=3, text="| `x` |\n# <b>", operator=steps[0].operator)],
        written=[],
    )


def test_the_balance_adds_up_to_the_rows_that_were_read() -> None:
    made = report(step("a_filter", 10, 7), step("a_mapper", 7, 7), step("splitter", 7, 9))
    assert reconciled(made) == [("kept", 9), ("a_filter", 3), ("splitter", -2)]
    assert sum(rows for _, rows in reconciled(made)) == 10


def test_a_text_of_a_row_is_nothing_but_text_in_the_report() -> None:
    told = to_markdown(report(step("a_filter", 10, 7)), SOURCE, "r.yaml", "c.svg").decode()
    assert "- row 3, by a_filter: `| 'x' | # <b>`\n" in told


def test_the_chart_has_a_bar_for_each_part_of_the_balance() -> None:
    made = report(step("(no text)", 10, 7), step("<odd>", 7, 2))
    chart = ET.fromstring(to_svg(made))  # noqa: S314  # our own
    bars = [each for each in chart.iter() if each.tag.endswith("rect")]
    texts = [each.text for each in chart.iter() if each.tag.endswith("text")]
    assert texts == ["kept", "2", "(no text)", "3", "<odd>", "5"]
    assert [float(each.get("width", "0")) for each in bars] == [168.0, 252.0, 420.0]
