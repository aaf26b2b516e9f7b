"""Classes, functions and tables of a notebook as methods and datasets of a run."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from helpers import make_result

import llpbench
from llpbench.contracts.errors import UsageError
from llpbench.plugins.from_objects import name_objects
from llpbench.plugins.registry import load_registry
from llpbench.report.progress import LineView, NotebookView, make_view
from llpbench.results.metric_style import MetricStyle

CELL = """
import math
import numpy as np
from llpbench import Part, Split, random_split
from llpbench import Skip as Declined

SHARE, LIMIT, frame = 0.25, float("inf"), object()

def means_of(bags):
    return np.add.reduceat(bags.X, bags.offsets[:-1]) / bags.sizes[:, None]

class Base:
    def predict_scores(self, X):
        return X @ self.w_

class SortedBags(Base):
    '''Score along the line between low and high bags.'''

    tasks = ("binary",)

    def __init__(self, share=SHARE):
        self.share = share

    def fit(self, bags: Missing, *, monitor, seed):
        if len(bags) > LIMIT:
            raise Declined("too many")
        frame = means_of(bags)  # a local name, not the object of the cell
        order = np.argsort(bags.proportions[:, 0], kind="stable")
        k = max(1, math.floor(self.share * len(bags)))
        self.w_ = frame[order[-k:]].mean(axis=0) - frame[order[:k]].mean(axis=0)
        monitor.report(self.predict_scores)
        return self

def two_blobs(files, *, seed, rows=400):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=rows)
    X = (y[:, None] + rng.normal(size=(rows, 3))).astype(np.float32)
    return Split(*(Part(X[part], y[part]) for part in random_split(rows, (0.8, 0.1, 0.1), seed)))
"""


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Run cells as IPython does: in a module without a file, sources in ``linecache``."""
    module = ModuleType("notebook_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = []

    def run(text: str) -> ModuleType:
        names.append(f"<cell {len(names)}>")
        linecache.cache[names[-1]] = (len(text), None, text.splitlines(keepends=True), names[-1])
        exec(compile(text, names[-1], "exec"), vars(module))
        return module

    yield run
    for name in names:
        linecache.cache.pop(name)


def table(rows: int = 300) -> pd.DataFrame:
    frame = pd.DataFrame({"a": [i % 7 for i in range(rows)], "site": [f"s{i % 30}" for i in range(rows)]})
    frame["sick"] = (frame["a"] > 3).astype(int)
    frame.attrs.update(label="sick", name="Clinic")
    return frame


@pytest.mark.slow
def test_a_run_takes_classes_loaders_and_tables_of_a_notebook(notebook: Any, tmp_path: Path) -> None:
    cell = notebook(CELL)
    asked: dict[str, Any] = {"bags": [8], "seeds": 1, "out": tmp_path / "out", "progress": False}
    methods, datasets = [cell.SortedBags, "best-feature"], [cell.two_blobs, table()]
    results = llpbench.run(methods, datasets=datasets, **asked)
    assert set(results.cells["status"]) == {"ok"}
    assert set(results.cells["dataset"]) == {"two-blobs", "clinic"}
    before = {r.id: r.started for r in results.results}
    again = llpbench.run(methods, datasets=datasets, **asked)
    assert {r.id: r.started for r in again.results} == before
    changed = notebook(CELL.replace("bags.X", "2 * bags.X"))
    later = llpbench.run([changed.SortedBags, "best-feature"], datasets=datasets, **asked)
    rerun = {r.cell.method for r in later.results if r.started != before[r.id] or r.code != results.results[0].code}
    assert "sorted-bags" in rerun
    assert {r.code["method"] for r in later.results if r.cell.method == "sorted-bags"} != {
        r.code["method"] for r in results.results if r.cell.method == "sorted-bags"
    }
    assert {r.id: r.started for r in later.results if r.cell.method == "best-feature"}.items() <= before.items()


def test_the_plugin_has_what_the_object_uses_and_no_more(notebook: Any, tmp_path: Path) -> None:
    cell = notebook(CELL)
    named = name_objects({"methods": cell.SortedBags, "out": str(tmp_path / "out")})
    assert named["methods"] == ["sorted-bags"]
    (file,) = named["plugins"]
    text = Path(file).read_text()
    for used in (
        "import numpy as np",
        "from llpbench.contracts.errors import Skip as Declined",
        "SHARE = ",
        "class Base",
    ):
        assert used in text
    for unused in ("two_blobs", "frame =  object", "Split"):
        assert unused not in text
    spec = load_registry([Path(file)]).methods["sorted-bags"]
    assert (spec.summary, spec.tasks) == ("Score along the line between low and high bags", ("binary",))
    assert spec.resolve({}) == {"share": 0.25}
    assert name_objects({"methods": [cell.SortedBags], "out": str(tmp_path / "out")})["plugins"] == [file]
    other = notebook(CELL.replace("means_of(bags)  #", "means_of(bags) * 2  #")).SortedBags
    assert name_objects({"methods": other, "out": str(tmp_path / "out")})["plugins"] != [file]


def test_a_column_of_a_table_may_identify_bags(tmp_path: Path) -> None:
    frame = table()
    frame.attrs["bag"] = "site"
    named = name_objects({"methods": "mean-ridge", "datasets": frame, "out": str(tmp_path / "out")})
    spec = load_registry([Path(file) for file in named["plugins"]]).datasets["clinic"]
    assert (spec.own_bags, spec.resolve({})) == ("bag", {"bag": "site"})
    assert named["methods"] == "mean-ridge"
    assert name_objects({"methods": "mean-ridge"}) == {"methods": "mean-ridge"}


def test_what_cannot_be_sent_is_named(notebook: Any, tmp_path: Path) -> None:
    out = {"out": str(tmp_path / "out")}
    lock = notebook(
        "import threading\nlock = threading.Lock()\nclass Locked:\n    def fit(self):\n        lock.acquire()\n"
    )
    with pytest.raises(UsageError, match="'lock', a lock, is used by a class"):
        name_objects({"methods": lock.Locked, **out})

    class Local:
        def fit(self) -> None: ...

    with pytest.raises(UsageError, match=r"source of .*Local was not found"):
        name_objects({"methods": Local, **out})
    with pytest.raises(UsageError, match=r"no column 'label'.*table.attrs"):
        name_objects({"datasets": pd.DataFrame({"a": [1]}), **out})
    with pytest.raises(UsageError, match="expected names or classes, got int"):
        name_objects({"methods": [3], **out})
    listed = notebook("class Listed:\n    def __init__(self, sizes=[1]):\n        self.sizes = sizes\n").Listed
    with pytest.raises(UsageError, match="parameter 'sizes' needs a number, text or None as default"):
        name_objects({"methods": listed, **out})


def test_progress_in_a_notebook_is_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ipywidgets")
    ipython = pytest.importorskip("IPython")
    style = MetricStyle("auroc", words="AUROC")
    assert type(make_view(False, style)) is LineView
    monkeypatch.setattr(ipython, "get_ipython", lambda: type("Shell", (), {"kernel": None})())
    monkeypatch.setattr("IPython.display.display", lambda shown: None)
    view = make_view(False, style)
    assert isinstance(view, NotebookView)
    view.begin(3, 1)
    view.finished(make_result(value=0.9))
    assert (view.bar.value, view.bar.max, view.bar.bar_style) == (2, 3, "")
    assert "2/3 cells · " in view.text.value
    view.finished(make_result(status="failed", reason="broken"))
    view.end()
    assert (view.bar.bar_style, "1 failed" in view.text.value) == ("danger", True)
