from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from storage.errors import StorageUnavailableError
from storage.index.embedders.base import unit_rows

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=FINITE))
def test_rows_of_any_size_keep_their_direction_at_unit_length(rows: Any) -> None:
    unit = unit_rows(rows, len(rows), "it")
    assert unit.dtype == np.float32
    for row, given_row in zip(unit, rows, strict=True):
        if given_row.any():
            assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)
            assert np.sign(row[np.argmax(np.abs(given_row))]) == np.sign(
                given_row[np.argmax(np.abs(given_row))]
            )
        else:
            assert not row.any()


def test_no_texts_are_no_rows() -> None:
    assert len(unit_rows([], 0, "it")) == 0


@pytest.mark.parametrize("rows", [[1.0], [[1.0], [1.0, 2.0]], [[]], [[float("nan")]], [None]])
def test_what_is_no_vector_for_each_text_is_refused(rows: Any) -> None:
    with pytest.raises(StorageUnavailableError, match=r"it (gave|returned)"):
        unit_rows(rows, 1, "it")
