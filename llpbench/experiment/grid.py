"""Turn a request into cells: every combination once, in an order that completes whole tables early."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from llpbench.contracts.cell import BOUND_BAGS, OWN_SIZES, USUAL, Cell, JoinedScheme
from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.contracts.specs import OWN_BAGS, BagScheme, DatasetSpec, MethodSpec, Scalar
from llpbench.experiment.plan import Planned
from llpbench.experiment.privacy import MECHANISMS, count_noise_sd, epsilon_of, noise_name
from llpbench.experiment.run_settings import DEFAULT_BAGS, RunSettings
from llpbench.plugins.options import JOIN, expand, format_options, parse_options, split_joined
from llpbench.plugins.registry import Catalog, Registry
from llpbench.system.backend import BACKENDS

S = TypeVar("S", MethodSpec, DatasetSpec, BagScheme)

MOST_FOLDS = 100
USUAL_FOLDS = 5
"""The default number of folds of a search by a cross-validated rule."""


@dataclass(frozen=True)
class Variant(Generic[S]):
    """A spec with the options that were given for it, and the preset of a method."""

    spec: S
    given: dict[str, Scalar]
    preset: str = ""

    @property
    def resolved(self) -> dict[str, Scalar]:
        """All options, defaults filled in."""
        return self.spec.resolve(self.given)

    @property
    def name(self) -> str:
        """The name with the options that differ from the defaults."""
        return format_options(self.spec.name, self.spec.changed(self.given))


@dataclass(frozen=True)
class Schemes:
    """The bag schemes of a cell; several are of the same rows."""

    parts: tuple[Variant[BagScheme], ...]

    @property
    def name(self) -> str:
        """The names with the options that differ from the defaults, joined by ``&``."""
        return JOIN.join(part.name for part in self.parts)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a cell."""
        first, *others = (JoinedScheme(part.spec.name, part.resolved) for part in self.parts)
        joined = {"joined": tuple(others)} if others else {}
        return {"scheme": first.scheme, "scheme_options": first.scheme_options, **joined}

    @classmethod
    def of(cls, cell: Cell, catalog: Catalog[BagScheme]) -> Schemes:
        """The schemes of a planned cell."""
        return cls(tuple(Variant(catalog[each.scheme], dict(each.scheme_options)) for each in cell.schemes))


@dataclass(frozen=True)
class Tuned:
    """Parameters that a search chose for a cell, the name of their origin, and the duration of the search."""

    params: Mapping[str, Scalar]
    preset: str
    seconds: float


PRESET = "preset"
"""The option of a method in brackets that names one of its presets."""

FindTuned = Callable[[Cell, Mapping[str, Scalar]], Tuned | None]
"""Finds the tuned parameters for a cell and its given parameters; None if its method was not tuned."""


def plan_cells(spec: RunSettings, registry: Registry, tuned: FindTuned | None = None) -> list[Planned]:
    """All cells of a request, validated; the seed varies slowest, so that tables with one seed are complete first.

    A bound (a method that is given labels) does not depend on bags or noise and is run once for each dataset and seed,
    with bags of size one, unless whole bags are split. A scheme that sizes its bags itself is run once, whatever sizes
    are requested.
    """
    check_axes(spec)
    registry.rules.entry(spec.params_rule)  # raises an error if there is no such rule
    methods = _methods(registry.methods, spec)
    datasets, schemes = _variants(registry.datasets, spec.datasets), _schemes(registry.schemes, spec.schemes)
    noises = list(dict.fromkeys(noise_name(text) for text in spec.noise))
    planned: dict[str, Planned] = {}
    axes = itertools.product(spec.seed_list, datasets, schemes, noises, spec.feature_noise, spec.bags, methods)
    for seed, dataset, asked, noise, feature_noise, bag_size, method in axes:
        scheme = _scheme_for(dataset, asked, registry)
        data: dict[str, Any] = {
            "dataset": dataset.spec.name,
            "dataset_options": dataset.resolved,
            "feature_noise": feature_noise,
        }
        bags = _bags(spec, dataset, scheme, bag_size)
        if method.spec.oracle and spec.split == USUAL.split:
            bags = {"bag_size": BOUND_BAGS}
        if not method.spec.oracle:
            bags |= {"noise": noise} | ({} if noise == "none" else {"delta": spec.delta})
            bags |= {} if noise == "none" or spec.mechanism == MECHANISMS[0] else {"mechanism": spec.mechanism}
            bags |= {"folds": spec.folds}
        params, name, preset = named_settings(method, dataset.spec.name, bags["bag_size"])
        backend = spec.backend if method.spec.backends else ""
        cell = Cell(method=method.spec.name, params=params, seed=seed, backend=backend, preset=preset, **data, **bags)
        found = tuned(cell, method.given) if tuned is not None else None
        if found is not None:
            params = method.spec.resolve({**found.params, **method.given})
            cell = msgspec.structs.replace(cell, params=params, preset=found.preset)
            name = format_options(method.spec.name, {"params": found.preset, **method.given})
        shown = shown_data(cell, dataset, scheme)
        seconds = found.seconds if found is not None else 0.0
        plan = Planned(
            cell=cell, method_name=name, dataset_name=shown, oracle=method.spec.oracle, tuning_seconds=seconds
        )
        planned.setdefault(cell.id, plan)
    return list(planned.values())


def plan_bags(spec: RunSettings, registry: Registry) -> list[Planned]:
    """The bags of a request as cells without a method: every dataset, scheme, size and seed once."""
    check_axes(spec)
    datasets, schemes = _variants(registry.datasets, spec.datasets), _schemes(registry.schemes, spec.schemes)
    planned: dict[str, Planned] = {}
    for seed, dataset, asked, bag_size in itertools.product(spec.seed_list, datasets, schemes, spec.bags):
        scheme = _scheme_for(dataset, asked, registry)
        data: dict[str, Any] = {"dataset": dataset.spec.name, "dataset_options": dataset.resolved}
        bags = _bags(spec, dataset, scheme, bag_size)
        cell = Cell(method="", seed=seed, **data, **bags)
        shown = shown_data(cell, dataset, scheme)
        planned.setdefault(cell.id, Planned(cell=cell, method_name="", dataset_name=shown))
    return list(planned.values())


def _bags(spec: RunSettings, dataset: Variant[DatasetSpec], scheme: Schemes, bag_size: int) -> dict[str, Any]:
    sized = all(part.spec.sizes_itself for part in scheme.parts)
    size = OWN_SIZES if sized else _checked_size(bag_size, dataset.spec)
    split = {} if spec.split == USUAL.split else {"split": spec.split}
    if split and scheme.parts[1:]:
        raise UsageError(f"--split bags assigns each row to one bag; {scheme.name} has several groupings of the rows.")
    return {"bag_size": size, **scheme.fields, **split}


def shown_data(cell: Cell, dataset: Variant[DatasetSpec], scheme: Schemes | None) -> str:
    """The display name of a cell's data: the dataset with all options and conditions that are not the defaults.

    A bound does not depend on bags, so its name has no scheme, unless whole bags are split.
    """
    usual = (cell.scheme, cell.scheme_options, cell.joined) == (USUAL.scheme, {}, ())
    conditions = [scheme.name] if scheme is not None and not usual else []
    conditions += [f"split={cell.split}"] if cell.split != USUAL.split else []
    conditions += [f"feature noise {cell.feature_noise:g}"] if cell.feature_noise else []
    conditions += [f"{cell.folds} folds"] if cell.folds else []
    return ", ".join([dataset.name, *conditions])


def _scheme_for(dataset: Variant[DatasetSpec], asked: Schemes, registry: Registry) -> Schemes:
    """The requested scheme; for a dataset with natural bags, these replace random ones."""
    option = dataset.spec.own_bags
    brings = bool(option) and dataset.resolved[option] not in (None, False, "", "none")
    if brings and asked.name == USUAL.scheme:
        return Schemes((Variant(registry.schemes[OWN_BAGS], {}),))
    return asked


def named_settings(method: Variant[MethodSpec], dataset: str, bag_size: int) -> tuple[dict[str, Scalar], str, str]:
    """Parameters, name and preset of a method: given values override the preset, which overrides the defaults."""
    if not method.preset:
        return method.resolved, method.name, ""
    values = method.spec.preset(method.preset, dataset, bag_size)
    name = format_options(method.spec.name, {"preset": method.preset, **method.given})
    return method.spec.resolve({**values, **method.given}), name, method.preset


def check_axes(spec: RunSettings) -> None:
    """Raise an error for a request that is invalid for every dataset, naming the axis."""
    for axis in ("methods", "datasets", "bags", "schemes", "noise", "feature_noise"):
        if not getattr(spec, axis):
            raise UsageError(f"--{axis.replace('_', '-')} is empty; give at least one.")
    for size in spec.bags:
        if size < 1:
            raise UsageError(f"bag size {size} is not possible: it must be an integer of at least 1.")
    if min(spec.seed_list) < 0:
        raise UsageError(f"--seeds {spec.seeds}: seeds must be integers from 0.")
    for sigma in spec.feature_noise:
        if not 0 <= sigma < float("inf"):
            raise UsageError(f"feature noise {sigma:g} is not possible: it must be a standard deviation of at least 0.")
    if spec.folds < 0 or spec.folds == 1 or spec.folds > MOST_FOLDS:
        raise UsageError(f"--folds {spec.folds}: give from 2 to {MOST_FOLDS} folds, or 0 for none.")
    if spec.backend not in BACKENDS:
        raise UsageError(f"unknown backend {spec.backend!r}. Available: {', '.join(BACKENDS)}.")
    for text in spec.noise:
        count_noise_sd(epsilon_of(text), spec.delta, spec.mechanism)
    if spec.params and spec.preset:
        raise UsageError("--params and --preset both set parameters; give one of them.")


def _variants(catalog: Catalog[S], texts: Iterable[str]) -> list[Variant[S]]:
    parsed = [parse_options(text) for text in texts]
    return [Variant(catalog[name], given) for name, options in parsed for given in expand(catalog[name], options)]


def _schemes(catalog: Catalog[BagScheme], texts: Iterable[str]) -> list[Schemes]:
    """Every combination of the variants of schemes that are joined."""
    parts = [[_variants(catalog, [part]) for part in split_joined(text)] for text in texts]
    return [Schemes(combination) for each in parts for combination in itertools.product(*each)]


def _methods(catalog: Catalog[MethodSpec], spec: RunSettings) -> list[Variant[MethodSpec]]:
    """The requested methods; ``bp[preset=paper]`` gives a preset to one of them, ``--preset`` to all that have it."""
    parsed = [parse_options(text) for text in spec.methods]
    known = {name for method, _ in parsed for name, _ in catalog[method].presets}
    if spec.preset and spec.preset not in known:
        raise UnknownNameError("preset of these methods:", spec.preset, known)
    found = []
    for name, options in parsed:
        method, own = catalog[name], dict(options)
        presets = [preset for preset, _ in method.presets]
        asked = own.pop(PRESET, [spec.preset if spec.preset in presets else ""])
        for preset in asked:
            if preset and preset not in presets:
                raise UnknownNameError(f"preset of {name}:", preset, presets)
        found += [Variant(method, given, preset) for preset in asked for given in expand(method, own)]
    for variant in found:
        for other in variant.spec.names_of_methods(variant.resolved):
            catalog.entry(other)  # raises an error if there is no such method
    return found


def _checked_size(bag_size: int, dataset: DatasetSpec) -> int:
    if dataset.rows is not None and bag_size > dataset.rows:
        raise UsageError(f"bag size {bag_size} is larger than {dataset.name}, which has {dataset.rows:,} rows in all.")
    return bag_size


def unused_sizes(spec: RunSettings, planned: Iterable[Planned]) -> list[str]:
    """Notes for bag sizes that were requested and are ignored, because a scheme sizes its bags itself."""
    if spec.bags == DEFAULT_BAGS:
        return []
    schemes = dict.fromkeys(plan.cell.scheme_name for plan in planned if plan.cell.bag_size == OWN_SIZES)
    cut = " (own-bags[most=N] divides larger ones)" if OWN_BAGS in schemes else ""
    return [f"{scheme} sizes its bags itself: --bags is ignored for it{cut}" for scheme in schemes]
