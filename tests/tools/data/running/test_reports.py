import pytest

from tools.data.answers.runs import RunReport, ShownRow, StepReport, WrittenFile

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


def test_a_text_of_a_row_is_nothing_but_text_in_the_report() -> None:
    told = report(step("a_filter", 10, 7)).to_markdown(SOURCE, "r.yaml").decode()
    assert "- row 3, by a_filter: `| 'x' | # <b>`\n" in told


@pytest.mark.parametrize(
    "logged",
    [
        "An error occurred in a_filter: no such word -- Traceback (most recent call last):\n  File",
        "2026-01-01 10:00:00 | ERROR | base_op:79 - An error occurred in a_filter: no such word --",
        "An error occurred during Op [a_filter]: no such word",
        "no such word",
    ],
)
def test_a_skipped_batch_is_told_with_the_errors_own_text(logged: str) -> None:
    made = StepReport(
        operator="a_filter", rows_in=3, rows_out=2, seconds=0, failed=1, errors=[logged]
    )
    told = "skipped 1 batch or row because of errors: no such word"
    assert f"\n  {told}\n" in report(made).to_text()
    assert f"a_filter `{told}`" in report(made).to_markdown(SOURCE, "r.yaml").decode()
