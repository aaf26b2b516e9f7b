"""The settings every network method shares, declared once. Light: no backend is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from llpbench import BACKENDS, MethodSpec, Param

MLP_WIDTHS: dict[str, tuple[int, ...]] = {
    "small": (256, 128, 64),
    "paper": (5040, 1280, 320, 128, 64),
}


@dataclass(frozen=True)
class NetworkSettings:
    """Settings of a network and its training; all methods share them except for the rate, so that budgets are equal.

    Attributes:
        lr: learning rate of Adam.
        weight_decay: decoupled decay of the kernels (AdamW).
        epochs: maximum number of passes over the training rows.
        patience: reports without improvement after which the monitor stops the fit.
        batch_rows: rows of a batch; a bag is never cut, so a larger bag is a batch of its own.
        mlp: hidden widths by name.
    """

    lr: float = 1e-3
    weight_decay: float = 1e-5
    epochs: int = 100
    patience: int = 20
    batch_rows: int = 1024
    mlp: str = "small"


_DEFAULT = NetworkSettings()

NETWORK_PARAMS: tuple[Param, ...] = (
    Param("lr", _DEFAULT.lr, low=1e-6, high=1.0, log=True, doc="learning rate of Adam"),
    Param(
        "weight_decay",
        _DEFAULT.weight_decay,
        low=1e-12,
        high=1e-1,
        log=True,
        doc="decoupled weight decay of the kernels (AdamW)",
    ),
    Param(
        "epochs",
        _DEFAULT.epochs,
        low=1,
        high=10_000,
        log=True,
        doc="maximum number of passes over about as many rows as there are training rows",
        tune=False,
    ),
    Param(
        "patience",
        _DEFAULT.patience,
        low=1,
        high=10_000,
        log=True,
        doc="reports without improvement before training stops",
        tune=False,
    ),
    Param(
        "batch_rows",
        _DEFAULT.batch_rows,
        low=2,
        high=8192,
        log=True,
        doc="rows per batch of whole bags (a larger bag is a batch of its own)",
    ),
    Param(
        "mlp",
        _DEFAULT.mlp,
        choices=tuple(MLP_WIDTHS),
        doc="hidden layers: small is 256-128-64, paper is 5040-1280-320-128-64",
        tune=False,
    ),
)


def network_params(settings: NetworkSettings, high: Mapping[str, float] | None = None) -> tuple[Param, ...]:
    """The shared parameters with the defaults of one method, and its upper ends where these differ."""
    ends = high or {}
    return tuple(replace(p, default=getattr(settings, p.name), high=ends.get(p.name, p.high)) for p in NETWORK_PARAMS)


NETWORK_PRELOAD = ("keras", "llpbench_methods.nets.training")


def network_spec(
    name: str,
    factory: str,
    summary: str,
    *,
    params: tuple[Param, ...] = (),
    settings: NetworkSettings = _DEFAULT,
    oracle: bool = False,
    control: bool = False,
    quick: bool = False,
    family: str = "",
    citation: str = "",
    paper: str = "",
    code: str = "",
    presets: tuple[tuple[str, str], ...] = (),
) -> MethodSpec:
    """The spec of a method that trains the shared network on tables or images: what all of them have in common.

    Args:
        name: what the user types.
        factory: ``"module:Class"``.
        summary: one sentence.
        params: parameters of its own; the shared ones come before them.
        settings: its defaults of the shared ones.
        oracle: it is given the training labels.
        control: a reference for comparison, not a competing method.
        quick: a fit on some ten thousand rows takes seconds.
        family: the idea it belongs to in a few words.
        citation: where it comes from.
        paper: address of the publication.
        code: address of its authors' code.
        presets: named settings, as in ``MethodSpec``.
    """
    return MethodSpec(
        name=name,
        factory=factory,
        summary=summary,
        params=(*network_params(settings), *params),
        tasks=("binary", "multiclass"),
        inputs=("features", "images"),
        backends=BACKENDS,
        preload=NETWORK_PRELOAD,
        oracle=oracle,
        control=control,
        quick=quick,
        scores="probability",
        family=family,
        citation=citation,
        paper=paper,
        code=code,
        presets=presets,
    )
