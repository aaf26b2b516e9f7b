"""The default method, threads and progress of fits."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

import llpbench
from llpbench.owndata import fit as module
from llpbench.owndata import report
from llpbench.owndata.fit import DEFAULT_METHOD, DEFAULT_PARAMS
from llpbench.owndata.threads import one_thread


def shops(n: int = 300) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "shop": np.arange(n) % 30})
    return frame, (frame["a"] > 0).groupby(frame["shop"]).sum()


def test_default_is_the_quick_average() -> None:
    frame, sold = shops()
    model = llpbench.fit(frame, "shop", sold, halvings=0)
    named = llpbench.fit(frame, "shop", sold, halvings=0, method=DEFAULT_METHOD, params=dict(DEFAULT_PARAMS))
    assert (model.method, model.params["members"]) == ("average", "quick")
    assert np.array_equal(model.predict_proba(frame), named.predict_proba(frame))
    other = llpbench.fit(frame, "shop", sold, halvings=0, params={"weights": "equal"})
    assert (other.params["members"], other.params["weights"]) == ("quick", "equal")


def test_method_may_have_options_as_compare_recommends_it() -> None:
    frame, sold = shops()
    wanted = llpbench.fit(frame, "shop", sold, halvings=0, method="bag-logistic", params={"penalty": 1.0})
    model = llpbench.fit(frame, "shop", sold, halvings=0, method="bag-logistic[penalty=1]")
    assert model.params == wanted.params
    assert np.array_equal(model.predict_proba(frame), wanted.predict_proba(frame))
    with pytest.raises(llpbench.UsageError, match="one value for each parameter"):
        llpbench.fit(frame, "shop", sold, method="bag-logistic[penalty=1;2]")


def test_importance_of_columns_uses_some_bags_of_large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, sold = shops(2400)
    frame["b"] = np.random.default_rng(1).normal(size=len(frame))
    model = llpbench.fit(frame, "shop", sold, method="mean-ridge", halvings=1)
    seen: list[int] = []
    whole = report._likelihood

    def counted(unseen: Any, rows: Any, *others: float) -> float:
        seen.append(sum(map(len, rows)))
        return whole(unseen, rows, *others)

    monkeypatch.setattr(report, "_likelihood", counted)
    monkeypatch.setattr(report, "_MOST_PREDICTIONS", 10_000)
    monkeypatch.setattr(report, "_LEAST_BAGS", 2)
    effects = model.report().effects
    assert effects is not None
    assert [effect.column for effect in effects] == ["a", "b"]
    assert max(seen) < 1200  # of 2,400 rows


def test_fits_use_one_thread_and_leave_settings_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=1")
    before = [pool["num_threads"] for pool in threadpool_info()]
    with one_thread():
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before
    assert os.environ["XLA_FLAGS"] == "--xla_force_host_platform_device_count=1"


def test_progress_is_reported_on_request_and_for_many_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, sold = shops()
    told: list[str] = []
    llpbench.fit(frame, "shop", sold, method="mean-ridge", halvings=1, progress=told.append)
    assert told[0] == "mean-ridge: fitting 27 bags of 270 rows"
    assert len(told) == 6  # the model and two halves
    llpbench.fit(frame, "shop", sold, method="mean-ridge", halvings=0)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(module, "MANY_ROWS", 299)
    llpbench.fit(frame, "shop", sold, method="mean-ridge", halvings=0)
    assert "mean-ridge: done in" in capsys.readouterr().err
