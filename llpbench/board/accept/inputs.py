"""What a method is given, as files, for methods that cannot be run here: bags, counts and rows to score; no label."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from llpbench.board.accept.predictions import digest_of_rows, prepared
from llpbench.board.checks.local_files import check_no_own_files
from llpbench.board.content.submission import (
    FORMAT,
    LAST_SEED,
    NAME,
    Submission,
    ToldCell,
    ToldMethod,
    inputs_path,
    told_cell,
)
from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Bags
from llpbench.contracts.errors import StoreError, UsageError
from llpbench.contracts.result import CellResult
from llpbench.execution.jobs import Context
from llpbench.experiment.grid import RunSpec, plan_bags
from llpbench.experiment.privacy import noise_name
from llpbench.plugins.registry import Registry
from llpbench.system.files import write_atomically

TEMPLATE = ToldMethod(name="your-method", title="", who="")


def settings(spec: RunSpec, registry: Registry) -> list[Cell]:
    """The settings of a request: every dataset, scheme, bag size, noise level and seed once, without a method."""
    if max(spec.seed_list) > LAST_SEED:
        raise UsageError(f"--seeds: seeds of a submission go up to {LAST_SEED:,}.")
    noises = list(dict.fromkeys(map(noise_name, spec.noise)))
    noisy = {"delta": spec.delta, "mechanism": spec.mechanism}
    plans = plan_bags(spec, registry)
    for plan in plans:
        check_no_own_files(plan.cell, registry)
    return [
        msgspec.structs.replace(plan.cell, noise=noise, **({} if noise == "none" else noisy))
        for plan in plans
        for noise in noises
    ]


def write_inputs(folder: Path, wanted: list[Cell], registry: Registry, context: Context) -> Iterator[Path]:
    """Write the inputs of settings one after another, then a ``submission.json`` to be filled in."""
    if (folder / NAME).exists():
        raise StoreError(f"{folder / NAME} is there already; write to another folder (--out).")
    told: list[ToldCell] = []
    for setting in wanted:
        result = CellResult(id=setting.id, cell=setting, status="ok")
        data = prepared(setting, result, registry, context)
        assert data.test_rows is not None
        assert data.bags.validation is not None
        arrays = {**_arrays(data.bags), **_arrays(data.bags.validation, "valid_"), "test_X": data.test_rows}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        path = inputs_path(folder, setting)
        _write(path, buffer.getvalue())
        told.append(told_cell(setting, digest_of_rows(data.test_rows)))
        yield path
    (folder / "predictions").mkdir(exist_ok=True)  # where its scores go
    template = Submission(format=FORMAT, method=TEMPLATE, cells=told)
    _write(folder / NAME, msgspec.json.format(msgspec.json.encode(template), indent=1) + b"\n")


def _arrays(bags: Bags, prefix: str = "") -> dict[str, np.ndarray]:
    """Bags as arrays: rows lie bag after bag, ``bag_of`` says which is whose."""
    return {
        f"{prefix}X": bags.X,
        f"{prefix}bag_of": bags.bag_of,
        f"{prefix}counts": bags.counts,
        f"{prefix}count_sd": np.array(bags.count_sd),
        f"{prefix}classes": np.array(bags.classes),
    }


def _write(path: Path, data: bytes) -> None:
    try:
        write_atomically(path, data)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}. Choose another folder with --out.") from None
