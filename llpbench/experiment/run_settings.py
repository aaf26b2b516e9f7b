"""The settings of a run: every option of ``llpbench run``, argument of ``llpbench.run`` and key of a run file.

To add one, declare it here and use it where it matters; help texts, types, completion and documentation follow.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from llpbench.contracts.view import View
from llpbench.experiment.setting import (
    Choice,
    Duration,
    FilePaths,
    Floats,
    Folder,
    Integers,
    Location,
    Memory,
    Names,
    Number,
    Seeds,
    SettingField,
    Settings,
    Switch,
    Text,
    Whole,
    listed_seeds,
)
from llpbench.plugins.options import parse_options

DEFAULT_BAGS = [8, 32, 128, 512, 1024, 2048]
Rerun = Literal["missing", "failed", "stale", "all"]
"""Which cells to run: those without a result, also the failed ones, also those of other versions, all."""
_LATER = ("mechanism", "params", "params_rule", "folds", "split")
"""Settings that came later: they enter the name of a request only where they are used, so that folders keep names."""


class Watch(SettingField[bool | View | None, bool | View]):
    """Whether progress is shown, or an object that is notified of it."""

    def read(self, value: bool | View | None) -> bool | View:
        """Take the object as it is."""
        return True if value is None else value


class _Methods(Settings, kw_only=False):
    """The argument that may be given without its name."""

    methods: Names = Names(
        "Methods, e.g. dllp,mean-ridge or dllp[lr=1e-3;1e-2].", [], short="m", names="methods", grid=True
    )


class RunSettings(_Methods):
    """What to run (the axes of the grid), how and where."""

    datasets: Names = Names("Datasets, e.g. adult,marketing.", ["adult"], short="d", names="datasets", grid=True)
    bags: Integers = Integers("Bag sizes.", DEFAULT_BAGS, short="b", grid=True)
    schemes: Names = Names("Ways of forming bags.", ["random"], names="schemes", grid=True)
    split: Choice[str] = Choice(
        "What is split into training, validation and test: rows, with bags formed within each part, or whole bags.",
        "rows",
        choices=["rows", "bags"],
        grid=True,
        rare=True,
    )
    noise: Names = Names("Privacy noise on counts: none,medium,high.", ["none"], grid=True)
    epsilon: Floats = Floats(
        "Noise levels by their epsilon, e.g. 3,0.5, in addition to those of --noise; without --noise, these alone.",
        [],
        rare=True,
    )
    delta: Number = Number("Delta of the privacy noise.", 1e-5, shown="1e-5", grid=True, rare=True)
    mechanism: Choice[str] = Choice(
        "How noise is sized: gaussian (the classic formula: no guarantee above epsilon 1) or analytic (the least valid "
        "noise at any epsilon).",
        "gaussian",
        choices=["gaussian", "analytic"],
        grid=True,
        rare=True,
    )
    feature_noise: Floats = Floats(
        "Standard deviation of noise on features, e.g. 0.05,0.1.", [0.0], grid=True, rare=True
    )
    backend: Text = Text("Backend of the networks: jax, tensorflow or torch.", "jax", grid=True, rare=True)
    folds: Whole = Whole("Fit K more times, on K folds over the bags: adds the rule bags-cv.", 0, grid=True, rare=True)
    seeds: Seeds = Seeds("Number of seeds (3: seeds 0, 1 and 2), or which: 0,1,2 or 3-5.", 3, short="s", grid=True)
    preset: Text = Text("Named settings of the methods that have them, e.g. paper.", "", grid=True, rare=True)
    params: Location = Location(
        "Tuned parameters: the folder or file that llpbench tune wrote, e.g. tuned.", "", grid=True
    )
    params_rule: Text = Text("Use the parameters tuned by this rule.", "bags", grid=True, rare=True)
    suite: Location = Location(
        "A frozen grid by name, or a part of it: llpbench-2026.1/random. --methods, --datasets, --schemes, --bags, "
        "--noise and --seeds select from it; a method that is not in the suite runs wherever all of its methods do.",
        "",
    )
    config: Location = Location(
        "A TOML file with these settings, or the name of a built-in one; options and arguments win over it.", ""
    )
    out: Location = Location("Results folder.", "", short="o", shown="results/NAME, the same for the same request")
    metric: Text = Text("Metric shown in progress and table; every metric is computed.", "auroc", rare=True)
    rerun: Choice[Rerun] = Choice(
        "Which cells to run: missing ones, failed ones too, those of other versions or code too, or all.",
        "missing",
        choices=get_args(Rerun),
    )
    exitfirst: Switch = Switch("Stop at the first cell that fails.", False, short="x")
    executor: Text = Text("Where cells run, e.g. local or dask[scheduler=tcp://HOST:8786].", "local", rare=True)
    jobs: Whole = Whole("Cells at once.", 0, short="j", shown="cores / threads")
    threads: Whole = Whole("Threads (and cores) of each cell.", 1, rare=True)
    timeout: Duration = Duration("Wall time a cell may take, e.g. 90, 30m, 2h.", 3600.0, shown="1h")
    memory: Memory = Memory(
        "Resident memory a cell may hold, e.g. 500MB.", 0.0, shown="8GB, less on a small machine", rare=True
    )
    start: Choice[str] = Choice("How processes start.", "", choices=["fork", "spawn"], shown="fork on Linux", rare=True)
    data: Folder = Folder("Folder with the data files (or LLPBENCH_DATA).", "", rare=True)
    offline: Switch = Switch("Never download data.", False, rare=True)
    predictions: Switch = Switch(
        "Keep test scores of every cell.",
        True,
        flags="--predictions/--no-predictions",
        shown="keep",
        rare=True,
    )
    override: Names = Names(
        "Where two plugins claim NAME, the one loaded last wins instead of an error.",
        [],
        flags="--plugin-override",
        repeated=True,
        rare=True,
    )
    plugins: FilePaths = FilePaths(
        "A plugin in a single Python file; may be repeated.", [], flags="--plugin", repeated=True
    )
    progress: Watch = Watch(
        "Show progress (True), warnings only (False), or notify a llpbench.View of your own.", True, flags=""
    )

    def derived(self, given: set[str]) -> dict[str, Any]:
        """Noise levels that are given by their epsilon become levels of ``noise``."""
        if not self.epsilon:
            return {}
        noise = self.noise if "noise" in given else []
        return {"noise": [*noise, *(f"epsilon={e}" for e in self.epsilon)], "epsilon": []}

    @property
    def seed_list(self) -> list[int]:
        """The seeds one by one."""
        return listed_seeds(self.seeds)

    @property
    def name(self) -> str:
        """A folder name that is the same for the same request: what it runs, and a hash."""
        words = [parse_options(text)[0] for text in (*self.methods, *self.datasets)]
        slug = "-".join(dict.fromkeys(words))[:48].rstrip("-")
        declared = RunSettings.declared()
        axes = {
            name: getattr(self, name)
            for name, setting in declared.items()
            if setting.grid and (name not in _LATER or getattr(self, name) != setting.default)
        }
        return f"{slug}-{hashlib.sha256(msgspec.json.encode(axes, order='sorted')).hexdigest()[:6]}"

    @property
    def data_folder(self) -> str:
        """The absolute path of ``data``; empty for the default."""
        return str(Path(self.data).resolve()) if self.data else ""

    @property
    def plugin_files(self) -> tuple[str, ...]:
        """The absolute paths of ``plugins``."""
        return tuple(str(Path(path).resolve()) for path in self.plugins)
