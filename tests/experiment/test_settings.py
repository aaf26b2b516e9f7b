"""Settings of a run say what they expect and what they found."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from llpbench.contracts.errors import UsageError
from llpbench.execution.settings import combine
from llpbench.experiment.run_settings import RunSettings


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("epsilon", True, "a number or a list of numbers, got True"),
        ("epsilon", dt.date(2024, 1, 31), "a number or a list of numbers, got datetime.date(2024, 1, 31)"),
        ("bags", [8, "many"], "a whole number or a list of them, got [8, 'many']"),
        ("seeds", 1.5, "a number of seeds (3), a list ([3, 4]) or a range ('3-5'), got 1.5"),
        ("datasets", [{"name": "adult"}], "a text or a list of texts, got [{'name': 'adult'}]"),
        ("timeout", -1, "seconds or a text such as '30m', got -1"),
        ("timeout", float("inf"), "seconds or a text such as '30m', got inf"),
        ("memory", float("nan"), "megabytes or a text such as '8GB', got nan"),
        ("exitfirst", "yes", "true or false, got 'yes'"),
        ("out", 1, "a path, got 1"),
        ("plugins", ["x.py", 2], "a path or a list of paths, got ['x.py', 2]"),
    ],
)
def test_wrong_type_is_an_error_that_names_both(name: str, value: Any, expected: str) -> None:
    with pytest.raises(UsageError) as error:
        combine({"methods": "dllp", name: value}, {}, RunSettings)
    assert str(error.value) == f"{name}: expected {expected}."
