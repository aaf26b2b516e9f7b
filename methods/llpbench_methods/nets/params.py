"""The settings every network method shares, declared once. Light: no engine is imported here."""

from __future__ import annotations

from dataclasses import dataclass

from llpbench import Param

MLP_WIDTHS: dict[str, tuple[int, ...]] = {
    "small": (256, 128, 64),
    "paper": (5040, 1280, 320, 128, 64),
}


@dataclass(frozen=True)
class NetworkSettings:
    """How a network is built and trained; the same for every method, so that budgets are equal.

    Attributes:
        lr: learning rate of Adam.
        weight_decay: decoupled decay of the kernels (AdamW).
        epochs: most passes over the training rows.
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
        doc="decoupled weight decay of the kernels (AdamW); the least is as good as none",
    ),
    Param(
        "epochs", _DEFAULT.epochs, low=1, high=10_000, log=True, doc="most passes over the training rows", tune=False
    ),
    Param(
        "patience",
        _DEFAULT.patience,
        low=1,
        high=10_000,
        log=True,
        doc="epochs without improvement before the fit stops",
        tune=False,
    ),
    Param(
        "batch_rows",
        _DEFAULT.batch_rows,
        low=2,
        high=8192,
        log=True,
        doc="rows of a batch of whole bags (a larger bag is a batch of its own)",
    ),
    Param(
        "mlp",
        _DEFAULT.mlp,
        choices=tuple(MLP_WIDTHS),
        doc="hidden layers: small is 256-128-64, paper is 5040-1280-320-128-64",
        tune=False,
    ),
)

NETWORK_BACKENDS = ("jax", "tensorflow", "torch")
NETWORK_PRELOAD = ("keras", "llpbench_methods.nets.training")
