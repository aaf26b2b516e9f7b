"""Display names of methods, datasets and noise levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from llpbench.contracts.cell import USUAL, USUAL_BACKENDS
from llpbench.contracts.errors import UsageError
from llpbench.experiment.plan import Planned
from llpbench.plugins.options import parse_options, split_joined, split_list


def home_backends(planned: Iterable[Planned]) -> dict[str, str]:
    """The backend that a method's name stands for: that of most of its cells, the default one of a tie.

    Cells of other backends are named with theirs.
    """
    counts: dict[str, Counter[str]] = {}
    for plan in planned:
        counts.setdefault(plan.method_name, Counter())[plan.cell.backend] += 1
    return {
        name: min(found, key=lambda backend: (-found[backend], backend not in USUAL_BACKENDS, backend))
        for name, found in counts.items()
    }


def method_name(label: str, settings_of: str, backend: str) -> str:
    """The display name of a method, with the date of its settings and its backend if these are given."""
    return label + (f" (settings of {settings_of})" if settings_of else "") + (f" ({backend})" if backend else "")


def named_options(label: str) -> dict[str, str]:
    """The options of a name as a user types it; empty if it cannot be parsed."""
    try:
        return {key: ";".join(values) for key, values in parse_options(label)[1].items()}
    except UsageError:
        return {}


def unusual_noise(mechanism: str, delta: float | None) -> list[str]:
    """The mechanism and delta of the noise on counts, in words, if these are not the defaults."""
    words = [mechanism] if mechanism not in ("", USUAL.mechanism) else []
    return words + ([f"delta {delta:g}"] if delta not in (None, USUAL.delta) else [])


def dataset_title(label: str) -> str:
    """A dataset with its bags in words: ``Adult by education`` for ``adult, group-by[columns=education;most=1000]``.

    Values of the dataset's options are in brackets, numbers with their names. Options of a scheme other than its
    columns are left out. Several groupings are counted: ``Adult, seven one-way tables``.
    """
    try:
        name, *conditions = split_list(label)
        base, options = parse_options(name)
        title = base[:1].upper() + base[1:]
        values = (f"{key} {v}" if v.isdecimal() else v for key, given in options.items() for v in given)
        title += f" ({', '.join(values)})" if options else ""
        for condition in conditions:
            words = " and ".join(map(_bags_title, split_joined(condition)))
            title += f" {words}" if words.startswith(("by ", "with ")) else f", {words}"
    except (UsageError, ValueError):
        return label
    return title


_NAMED = 3
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _bags_title(scheme: str) -> str:
    """A bag scheme in words."""
    name, given = parse_options(scheme)
    columns = [text.strip() for text in ",".join(given.get("columns", ())).replace("_", " ").split(",")]
    if name == "margins":
        if columns in ([""], ["*"]):
            return "all one-way tables"
        if len(columns) <= _NAMED:
            return f"table{'s' * (len(columns) > 1)} by {' and '.join(columns)}"
        return f"{_number(len(columns))} {'' if any('+' in text for text in columns) else 'one-way '}tables"
    if name == "random":
        return f"{_number(int(given['times'][0]))} random groupings" if "times" in given else "random bags"
    return f"by {' + '.join(columns[0].split('+'))}" if columns[0] else f"with {scheme.replace('-', ' ', 1)}"


def _number(n: int) -> str:
    return _NUMBERS[n] if n < len(_NUMBERS) else str(n)
