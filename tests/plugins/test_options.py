"""Names with options: what is typed, what is printed, and that the two are the same language."""

from __future__ import annotations

import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import MethodSpec, Param, UsageError
from llpbench.plugins.options import expand, format_options, format_scalar, parse_options, split_list

SPEC = MethodSpec(
    name="toy",
    factory="toy:Toy",
    params=(
        Param("flag", True),
        Param("count", 3),
        Param("rate", 0.5),
        Param("word", "plain"),
        Param("maybe", None, kind="float"),
    ),
)
WORDS = st.text(st.characters(codec="ascii", exclude_characters="[];,", exclude_categories=["C", "Z"]), min_size=1)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "flag": st.booleans(),
        "count": st.integers(-(2**80), 2**80),
        "rate": st.floats(allow_nan=False, allow_infinity=False),
        "word": WORDS,
        "maybe": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    },
)


@quick
@given(VALUES)
def test_label_round_trips(given_: dict[str, object]) -> None:
    label = format_options("toy", given_)  # type: ignore[arg-type]
    name, options = parse_options(label)
    assert name == "toy"
    (read,) = expand(SPEC, options)
    assert read == given_
    assert {k: type(v) for k, v in read.items()} == {k: type(v) for k, v in given_.items()}


@quick
@given(VALUES)
def test_label_does_not_depend_on_the_order_and_survives_a_list(given_: dict[str, object]) -> None:
    label = format_options("toy", given_)  # type: ignore[arg-type]
    assert format_options("toy", dict(reversed(given_.items()))) == label  # type: ignore[arg-type]
    assert split_list(f" {label} ,other,{label}") == [label, "other", label]


@quick
@given(st.lists(st.integers(), min_size=1, max_size=4), st.lists(st.sampled_from(["true", "false"]), max_size=2))
def test_expanding_gives_every_combination_once_in_order(counts: list[int], flags: list[str]) -> None:
    options = {"count": [str(c) for c in counts]} | ({"flag": flags} if flags else {})
    variants = expand(SPEC, options)
    assert len(variants) == len(counts) * max(1, len(flags))
    if flags:
        assert [(v["count"], v["flag"]) for v in variants] == [(c, f == "true") for c in counts for f in flags]
    else:
        assert [v["count"] for v in variants] == counts


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("dllp", "dllp", {}),
        ("dllp[]", "dllp", {}),
        (" dllp [lr=1] ", "dllp", {"lr": ["1"]}),
        ("dllp[lr=1e-3;1e-2;epochs=20]", "dllp", {"lr": ["1e-3", "1e-2"], "epochs": ["20"]}),
        ("dllp[ lr = 1 ; 2 ; ]", "dllp", {"lr": ["1", "2"]}),
        ("by[column=]", "by", {"column": [""]}),
        ("by[column=a=b]", "by", {"column": ["a=b"]}),
    ],
)
def test_parse_options_reads_labels(text: str, name: str, options: dict[str, list[str]]) -> None:
    assert parse_options(text) == (name, options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dllp[lr=1", "must end with ']'"),
        ("dllp[lr=1]x", "must end with ']'"),
        ("dllp[1;lr=2]", "expected option=value, got '1'"),
        ("dllp[lr=1;lr=2]", "sets 'lr' twice"),
    ],
)
def test_parse_options_rejects_invalid_labels(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_options(text)
    assert words in str(caught.value)


def test_lists_are_split_outside_brackets_only() -> None:
    assert split_list("a[x=1,2],b,, c ") == ["a[x=1,2]", "b", "c"]
    assert split_list("") == []
    for text in ("a[x=1", "a]x", "a[[x]]"):
        with pytest.raises(UsageError, match="unbalanced"):
            split_list(text)


def test_comma_inside_brackets_is_explained() -> None:
    with pytest.raises(UsageError, match="inside brackets, ';' separates"):
        expand(SPEC, {"rate": ["1e-3,1e-2"]})
    with pytest.raises(UsageError, match=r"^toy: .*Did you mean 'count'"):
        expand(SPEC, {"coutn": ["1"]})


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (1e-3, "0.001"), (1e-7, "1e-07"), (0.1 + 0.2, "0.30000000000000004"), (None, "none"), (3, "3")],
)
def test_scalars_are_printed_as_typed(value: object, text: str) -> None:
    assert format_scalar(value) == text  # type: ignore[arg-type]
