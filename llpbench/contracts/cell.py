"""A cell of the grid: one fit, and the id that names it."""

from __future__ import annotations

import functools
import hashlib
from typing import Any, Literal

import msgspec

from llpbench.contracts.specs import Scalar

SplitBy = Literal["rows", "bags"]
"""How rows are split: as the dataset splits them (bags are formed within each part), or by bag (bags are formed from
all rows, and each goes to one part as a whole)."""
SEARCHED = "tuned-"
"""The prefix of a cell's ``preset`` if a search chose its parameters; the rule of the search follows."""
OWN_SIZES = 0
"""The bag size of a cell whose scheme sizes its bags itself."""
BOUND_BAGS = 1
"""The bag size of a bound if rows are split: it is given every row with its label."""
USUAL_BACKENDS = ("", "jax")
"""Backends that need not be named: none, and the default."""


class JoinedScheme(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A further bag scheme of a cell, whose groupings are added to those of the first."""

    scheme: str
    scheme_options: dict[str, Scalar] = {}


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One fit: a method with all its parameters on one draw of bags of a dataset.

    Its id is the hash of its content, so equal cells are run once. Fields at their defaults do not enter the hash, so
    that new fields do not change old ids. (Two exceptions: feature noise always enters, delta if counts are noisy.) A
    cell with ``tuning`` is a trial of a search: it is evaluated on held-out data only, and its test rows are dropped.
    If the scheme sizes its bags itself, the bag size is ``OWN_SIZES``. With ``folds`` the method is also fitted on that
    many folds over bags, for cross-validated rules. ``joined`` are further schemes, with groupings of the same rows.
    """

    dataset: str
    method: str
    bag_size: int
    seed: int
    dataset_options: dict[str, Scalar] = {}
    params: dict[str, Scalar] = {}
    scheme: str = "random"
    scheme_options: dict[str, Scalar] = {}
    noise: str = "none"
    delta: float = 1e-5
    mechanism: str = "gaussian"
    feature_noise: float = 0.0
    backend: str = ""
    preset: str = ""
    tuning: bool = False
    folds: int = 0
    split: SplitBy = "rows"
    joined: tuple[JoinedScheme, ...] = ()

    @property
    def schemes(self) -> tuple[JoinedScheme, ...]:
        """All its bag schemes with their options."""
        return (JoinedScheme(self.scheme, self.scheme_options), *self.joined)

    @property
    def scheme_name(self) -> str:
        """The names of its bag schemes: ``group-by``, or ``group-by&own-bags``."""
        return "&".join(each.scheme for each in self.schemes)

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits of the sha256 of the cell's sorted JSON.

        Fields are compared with their defaults by value, because ``omit_defaults`` compares by identity.
        """
        usual = _defaults(type(self))
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        stated = {name: value for name, value in given.items() if name not in usual or value != usual[name]}
        stated["feature_noise"] = float(self.feature_noise)
        if self.noise != USUAL.noise:
            stated["delta"] = float(self.delta)
        return hashlib.sha256(msgspec.json.encode(stated, order="sorted")).hexdigest()[:16]

    @property
    def bags_name(self) -> str:
        """Its bags in a line about it: ``bag 128``, or the scheme where it sizes its bags itself."""
        return bag_words(self.bag_size, self.scheme_name)


@functools.cache
def _defaults(kind: type[Cell]) -> dict[str, Any]:
    """The default of each field that has one."""
    fields = msgspec.structs.fields(kind)
    return {f.name: f.default if f.default_factory is msgspec.NODEFAULT else f.default_factory()
            for f in fields if not f.required}  # fmt: skip


USUAL = Cell(dataset="", method="", bag_size=1, seed=0)
"""A cell with all conditions at their defaults."""


def bag_words(bag_size: int, scheme: str) -> str:
    """The bags of a setting in a heading: ``bag 128``, or the scheme where it sizes its bags itself."""
    return scheme if bag_size == OWN_SIZES else f"bag {bag_size}"


def setting_name(dataset: str, bag_size: int, between: str = ", ") -> str:
    """A setting in a line: the dataset, whose name has the scheme, and the bag size where the scheme takes one."""
    return dataset if bag_size == OWN_SIZES else f"{dataset}{between}bag {bag_size}"
