"""From a request to cells: every combination once, in an order that fills whole tables early."""

from __future__ import annotations

import hashlib
import itertools

import msgspec

from llpbench.cells import Cell
from llpbench.errors import UsageError
from llpbench.labels import expand, format_label, parse_label
from llpbench.privacy import count_noise_sd, epsilon_of, noise_label
from llpbench.registry import Registry, Shelf
from llpbench.specs import BagScheme, DatasetSpec, MethodSpec, Scalar
from llpbench.store import Planned

DEFAULT_BAGS = [8, 32, 128, 512, 1024, 2048]
BACKENDS = ("jax", "tensorflow", "torch")


class RunSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to run: the axes of the grid, as a TOML file or the command line states them."""

    methods: list[str]
    datasets: list[str] = msgspec.field(default_factory=lambda: ["adult"])
    bags: list[int] = msgspec.field(default_factory=lambda: list(DEFAULT_BAGS))
    seeds: int = 3
    schemes: list[str] = msgspec.field(default_factory=lambda: ["random"])
    noise: list[str] = msgspec.field(default_factory=lambda: ["none"])
    delta: float = 1e-5
    feature_noise: list[float] = msgspec.field(default_factory=lambda: [0.0])
    backend: str = "jax"

    @property
    def name(self) -> str:
        """A folder name that is the same for the same request: what it runs, and a hash."""
        words = [parse_label(label)[0] for label in (*self.methods, *self.datasets)]
        slug = "-".join(dict.fromkeys(words))[:48].rstrip("-")
        return f"{slug}-{hashlib.sha256(msgspec.json.encode(self, order='sorted')).hexdigest()[:6]}"


def plan_cells(spec: RunSpec, registry: Registry) -> list[Planned]:
    """All cells of a request, checked; seeds run outermost, so a table with one seed is whole first.

    A bound (a method that is given labels) does not depend on bags or noise: it is run once for each dataset and
    seed, as bags of size one.
    """
    check_axes(spec)
    methods = [variant for label in spec.methods for variant in _methods(label, registry)]
    datasets = [variant for label in spec.datasets for variant in _options(registry.datasets, label)]
    schemes = [variant for label in spec.schemes for variant in _options(registry.schemes, label)]
    noises = list(dict.fromkeys(noise_label(text) for text in spec.noise))
    _check_sizes(spec, registry, [name for name, _, _ in datasets])
    planned: dict[str, Planned] = {}
    axes = itertools.product(range(spec.seeds), datasets, schemes, noises, spec.feature_noise, spec.bags, methods)
    for seed, dataset, scheme, noise, feature_noise, bag_size, (method, params, label) in axes:
        bound = method.oracle
        cell = Cell(
            dataset=dataset[0],
            dataset_options=dataset[1],
            method=method.name,
            params=params,
            bag_size=1 if bound else bag_size,
            seed=seed,
            scheme="random" if bound else scheme[0],
            scheme_options={} if bound else scheme[1],
            noise="none" if bound else noise,
            delta=spec.delta if noise != "none" and not bound else 1e-5,
            feature_noise=feature_noise,
            backend=spec.backend if method.backends else "",
        )
        planned.setdefault(
            cell.id,
            Planned(cell=cell, label=label, dataset_label=_dataset_label(dataset[2], scheme[2], cell), oracle=bound),
        )
    return list(planned.values())


def check_axes(spec: RunSpec) -> None:
    """Refuse a request that no dataset could serve, naming the axis."""
    for axis in ("methods", "datasets", "bags", "schemes", "noise", "feature_noise"):
        if not getattr(spec, axis):
            raise UsageError(f"--{axis.replace('_', '-')} is empty; give at least one.")
    for size in spec.bags:
        if size < 1:
            raise UsageError(f"bag size {size} is not possible: bag sizes are integers of at least 1.")
    if spec.seeds < 1:
        raise UsageError(f"--seeds {spec.seeds}: at least one seed is needed (3 runs seeds 0, 1, 2).")
    for sigma in spec.feature_noise:
        if not 0 <= sigma < float("inf"):
            raise UsageError(f"feature noise {sigma:g} is not possible: it is a standard deviation.")
    if spec.backend not in BACKENDS:
        raise UsageError(f"unknown backend {spec.backend!r}. Available: {', '.join(BACKENDS)}.")
    for text in spec.noise:
        count_noise_sd(epsilon_of(text), spec.delta)


def _methods(label: str, registry: Registry) -> list[tuple[MethodSpec, dict[str, Scalar], str]]:
    name, options = parse_label(label)
    spec = registry.methods[name]
    variants = []
    for given in expand(spec, options):
        params = spec.resolve(given)
        differing = {p.name: params[p.name] for p in spec.params if params[p.name] != p.default}
        variants.append((spec, params, format_label(name, differing)))
    return variants


def _options(shelf: Shelf[DatasetSpec] | Shelf[BagScheme], label: str) -> list[tuple[str, dict[str, Scalar], str]]:
    name, options = parse_label(label)
    spec = shelf[name]
    variants = []
    for given in expand(spec, options):
        resolved = spec.resolve(given)
        differing = {p.name: resolved[p.name] for p in spec.params if resolved[p.name] != p.default}
        variants.append((name, resolved, format_label(name, differing)))
    return variants


def _dataset_label(label: str, scheme: str, cell: Cell) -> str:
    """The dataset as tables name it, with the conditions that make its cells a table of their own."""
    conditions = []
    if cell.scheme != "random":
        conditions.append(scheme)
    if cell.feature_noise:
        conditions.append(f"feature noise {cell.feature_noise:g}")
    return ", ".join([label, *conditions])


def _check_sizes(spec: RunSpec, registry: Registry, datasets: list[str]) -> None:
    for name in dict.fromkeys(datasets):
        rows = registry.datasets[name].rows
        if rows is not None and max(spec.bags) > rows:
            raise UsageError(f"bag size {max(spec.bags)} is larger than {name}, which has {rows:,} rows in all.")
