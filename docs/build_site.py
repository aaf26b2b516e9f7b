"""MkDocs hooks: pages generated at build time, and links that leave `docs/`.

The home page is the README. References come from docstrings and the command line, catalogues from the registry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from blocks import Block, blocks, without_comments
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import llpbench
from llpbench.board.built.about import FILES, GUIDES
from llpbench.board.built.build import built_files
from llpbench.board.content.folder import read_folder
from llpbench.cli import cli
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.setting import SettingField
from llpbench.plugins.options import format_scalar
from llpbench.plugins.registry import load_registry
from llpbench.tuning.settings import TuneSettings

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

    from llpbench import DatasetSpec, MethodSpec, Param

ROOT = Path(__file__).resolve().parents[1]
BOARD = "leaderboards/index.html"
BOARD_FOLDER = "leaderboard-page"
BOARD_PAGE = f"{BOARD_FOLDER}/index.html"
TUTORIALS = ("quickstart", "own-data", "new-method", "notebooks")

USE = {
    "Running a benchmark": ("run", "tune", "Results"),
    "Your own data": (
        "fit",
        "LLPModel",
        "load",
        "Report",
        "compare",
        "Comparison",
        "disclosure",
        "Disclosure",
        "LLPClassifier",
        "example_table",
    ),
}
"""Chapters of the Python reference for users: public names of llpbench."""
CONTRACTS = {
    "Data": ("Bags", "Part", "Split", "Column", "random_split"),
    "Methods": ("Method", "Monitor", "Restorable", "HeldOut"),
    "Specs": (
        "MethodSpec",
        "DatasetSpec",
        "Param",
        "DataFile",
        "PackageSource",
        "MetricSpec",
        "RuleSpec",
        "BagScheme",
        "ExecutorSpec",
        "Reference",
    ),
    "Cells and results": ("Cell", "CellResult"),
    "Errors": ("LLPBenchError", "Skip", "UsageError", "LLPWarning"),
}
"""Chapters of the Python reference for plugin authors."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the leaderboard's page with its downloads."""
    registry = load_registry()
    methods = [entry.spec for entry in registry.methods if entry.plugin.builtin]
    datasets = [entry.spec for entry in registry.datasets if entry.plugin.builtin]
    pages = {
        "index.md": _home((ROOT / "README.md").read_text(encoding="utf-8")),
        "api/use.md": _reference("Python: running and fitting", "All names are public names of `llpbench`.", USE)
        + _settings(),
        "api/contracts.md": _reference(
            "Python: writing plugins",
            "Import these names from `llpbench`: `from llpbench import Bags`.",
            CONTRACTS,
        ),
        "api/inference.md": _inference(),
        "cli.md": _commands(),
        "methods.md": _catalogue("Methods", "run --methods", methods, _method_facts),
        "datasets.md": _catalogue("Datasets", "run --datasets", datasets, _dataset_facts),
        "leaderboard.md": _board(),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    for name in TUTORIALS:
        text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        files.append(File.generated(config, f"notebooks/{name}.ipynb", content=notebook(text)))
    board = board_files()
    files.append(File.generated(config, BOARD_PAGE, content=with_guides(board["index.html"].decode())))
    for name in FILES:
        files.append(File.generated(config, f"{BOARD_FOLDER}/{name}", content=board[name]))
    return files


def board_files() -> dict[str, bytes]:
    """The leaderboard's page and the downloads it links to."""
    return built_files(read_folder(ROOT / "leaderboards"), downloads=True)


def with_guides(page: str) -> str:
    """The leaderboard's page with links to guides replaced by their addresses on the site.

    The links are part of the page's data, so the hashes of its scripts remain valid.
    """
    for address in GUIDES:
        guide = Path(address)
        if not (ROOT / "docs" / guide.name).exists():
            raise PluginError(f"{BOARD}: the link target {address} does not exist.")
        page = page.replace(f'"{address}"', f'"../{guide.stem}.html"')
    return page


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Link to the leaderboard on the site, and replace links to other files of the repository by their text."""
    up = "../" * page.file.src_uri.count("/")

    def named(link: re.Match[str]) -> str:
        if not (ROOT / link["target"]).exists():
            raise PluginError(f"{page.file.src_uri}: the link target ../{link['target']} does not exist.")
        return link["text"]

    if (name := page.file.src_uri.removesuffix(".md")) in TUTORIALS:
        markdown = f"{markdown}\n\n[This page as a notebook](notebooks/{name}.ipynb)\n"
    here = without_comments(markdown).replace(f"]({up}../{BOARD})", f"]({up}{BOARD_PAGE})")
    return re.sub(rf"\[(?P<text>[^\]]*)\]\({re.escape(up)}\.\./(?P<target>[^)#]+)(#[^)]*)?\)", named, here)


def notebook(markdown: str) -> str:
    """A page as a Jupyter notebook: code blocks that run are its cells, everything else is text.

    A block that begins with ``# name.py`` writes that file; commands of the shell begin with ``!``. Lines that install
    something are left as text: whoever runs the notebook has llpbench.
    """
    cells, ahead = list[dict[str, Any]](), iter([block for block in blocks(markdown) if block.shown])
    for part in re.split(r"^(```\w+\n.*?^```\n)", without_comments(markdown), flags=re.DOTALL | re.MULTILINE):
        block = next(ahead) if part.startswith("```") else None
        code = _of_notebook(block) if block is not None else None
        if text := (part if code is None else code).strip():
            kinds = {"cell_type": "markdown"} if code is None else dict(_CODE)
            source = text.splitlines(keepends=True)
            cells.append({**kinds, "id": f"cell-{len(cells)}", "metadata": {}, "source": source})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    page = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(page, ensure_ascii=False, indent=1)


_CODE = {"cell_type": "code", "execution_count": None, "outputs": []}


def _of_notebook(block: Block) -> str | None:
    """The cell of a block; None where it is no cell."""
    if not block.runs or "pip install" in block.code:
        return None
    if block.language == "sh":
        return "\n".join(f"!{line}" if line else "" for line in block.code.replace("\\\n", " ").splitlines())
    return f"%%writefile {block.file}\n{block.code}" if block.file else block.code


def _home(readme: str) -> str:
    """The README as a page of `docs/`, with adjusted links."""
    inside = re.sub(r"\]\(docs/", "](", readme)
    return re.sub(r"\]\((?=(leaderboards|benchmarks|tests|methods|datasets)/|[A-Z]+)", "](../", inside)


def _path(name: str) -> str:
    """The path under which mkdocstrings finds a public name of llpbench."""
    public = getattr(llpbench, name)
    return f"{public.__module__}.{public.__qualname__}"


def _reference(title: str, lead: str, chapters: dict[str, tuple[str, ...]]) -> str:
    lines = [f"# {title}", lead]
    for chapter, names in chapters.items():
        lines += [f"## {chapter}", *(f"::: {name if '.' in name else _path(name)}" for name in names)]
    return "\n\n".join(lines) + "\n"


def _settings() -> str:
    """Every setting of a run and of a search: argument of the call, option of the command and key of a run file."""
    run, tune = RunSettings.declared(), TuneSettings.declared()
    lines = ["", *_table("run", "Most are also keys of a run file.", run.values())]
    own = [setting for name, setting in tune.items() if run.get(name) is not setting]
    lines += _table("tune", "All of `llpbench.run`, and these (in a run file: keys of the table `[search]`):", own)
    return "\n\n".join(lines) + "\n"


def _table(call: str, lead: str, settings: Iterable[SettingField[Any, Any]]) -> Iterator[str]:
    rows = ["| argument | option | default | what |", "|---|---|---|---|"]
    for s in settings:
        option = f"`{s.flags.split(',')[0]}`" if s.flags else ""
        rows.append(f"| `{s.name}` | {option} | {_plain(s.shown)} | {_plain(s.help)} |")
    yield from (f"## Arguments of llpbench.{call}", lead, "\n".join(rows))


def _commands() -> str:
    """Every command with its options, as printed by ``--help``."""
    lead = "The output of `llpbench COMMAND --help` for every command."
    return "\n\n".join(["# Command line", lead, *_command(cli, click.Context(cli, info_name="llpbench"))]) + "\n"


def _command(command: click.Command, ctx: click.Context) -> Iterator[str]:
    """A heading, the help text and a table of options; then the same for the commands of a group."""
    if ctx.parent is not None:
        yield f"{'#' * ctx.command_path.count(' ')}# {ctx.command_path}"
    yield f"```text\n{command.get_usage(ctx).removeprefix('Usage: ')}\n```"
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        yield f"```text\n{paragraph[1:].strip()}\n```" if paragraph.startswith("\b") else _plain(paragraph)
    records = [p.get_help_record(ctx) for p in command.get_params(ctx) if "--help" not in p.opts]
    rows = [f"| `{names}` | {_plain(text)} |" for names, text in filter(None, records)]
    yield "\n".join(["| option | meaning |", "|---|---|", *rows]) if rows else ""
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            if (inner := command.get_command(ctx, name)) is not None and not inner.hidden:
                yield from _command(inner, click.Context(inner, info_name=name, parent=ctx))


def _plain(text: str) -> str:
    """A text of the command line as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_|<\[\]])", r"\\\1", text)


def _inference() -> str:
    """The public names of the inference library, from its stub."""
    stub = (ROOT / "methods" / "llpbench_methods" / "inference" / "__init__.pyi").read_text(encoding="utf-8")
    named = re.findall(r"^from \.([\w.]*) import (\w+)", stub, flags=re.MULTILINE)
    functions = tuple(f"llpbench_methods.inference.{module}.{name}" for module, name in named)
    lead = (
        "Public names of `llpbench_methods.inference`, a library that is independent of the benchmark. "
        "[Belief propagation engines](../bp-engines.md#a-worked-example) has a worked example."
    )
    return _reference("Python: belief propagation", lead, {"Names": functions})


def _catalogue(title: str, command: str, specs: Iterable[Any], facts: Any) -> str:
    lines = [f"# {title}", f"Generated from the registry. Parameters go in brackets: `llpbench {command} "
             "'NAME[parameter=value]'`."]  # fmt: skip
    specs = list(specs)
    rows = [f"| [`{spec.name}`](#{spec.name}) | {_cell(spec.summary)} |" for spec in specs]
    lines.append("\n".join([f"| {title.lower().removesuffix('s')} | summary |", "|---|---|", *rows]))
    for spec in specs:
        lines += [f"## {spec.name}", _sentence(spec.summary)]
        lines.append("\n".join(f"- **{what}**: {value}" for what, value in facts(spec) if value))
        if spec.params:
            rows = [_param(p) for p in spec.params]
            lines.append("\n".join(["| parameter | default | values | meaning |", "|---|---|---|---|", *rows]))
    return "\n\n".join(line for line in lines if line) + "\n"


def _method_facts(spec: MethodSpec) -> list[tuple[str, str]]:
    kind = "a bound that receives labels" if spec.oracle else "a control" if spec.control else ""
    return [
        ("kind", kind),
        ("tasks", ", ".join(spec.tasks)),
        ("runs on", ", ".join(spec.backends)),
        ("presets", ", ".join(f"`{name}`" for name, _ in spec.presets)),
        ("from", spec.citation),
        ("paper", f"<{spec.paper}>" if spec.paper else ""),
        ("authors' code", f"<{spec.code}>" if spec.code else ""),
    ]


def _dataset_facts(spec: DatasetSpec) -> list[tuple[str, str]]:
    return [
        ("classes", str(spec.classes)),
        ("rows", f"{spec.rows:,}" if spec.rows else ""),
        ("columns", str(spec.columns or "")),
        ("share of positives", f"{100 * spec.balance[1]:.1f} %" if len(spec.balance) == 2 else ""),
        ("split", spec.split),
        ("licence", spec.licence),
        ("from", spec.citation),
        ("source", f"<{spec.homepage}>" if spec.homepage else ""),
    ]


def _param(p: Param) -> str:
    default = format_scalar(p.default)
    cells = (f"`{p.name}`", f"`{default}`" if default else "", p.describe_range(), p.doc)
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


def _board() -> str:
    """The page that links to the leaderboard, which has its own layout."""
    return (
        f"# The leaderboard\n\n[Open the leaderboard]({BOARD_PAGE}){{ .md-button .md-button--primary }}\n\n"
        "It shows every published number. Choose a dataset, a bag size and the selection rule, and click a number for "
        "its parameters, its seeds and the command that reproduces it. The [glossary](glossary.md) explains the "
        f"terms.\n\n[![The leaderboard](images/leaderboard.png)]({BOARD_PAGE})\n"
    )
