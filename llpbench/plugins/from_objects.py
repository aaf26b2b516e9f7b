"""Plugins from objects: classes, loaders and tables that a notebook or a script hands to ``llpbench.run``.

Cells run in processes of their own, which import code from files. So the source of an object is written to a
single-file plugin, with everything it uses from the module that it was defined in. The name of the file has a digest of
its content, and the fingerprint of the plugin is that of any single file: edited code is run again.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import re
import symtable
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from llpbench.contracts.errors import UsageError
from llpbench.plugins.registry import load_registry
from llpbench.system.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "llpbench-code"
"""Beside results folders: a method cannot read what is in them."""
_METHOD_FACTS = ("tasks", "inputs", "backends", "scores", "paper", "citation")
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def name_objects(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run with names in place of objects, whose plugins are added to ``plugins``.

    Methods may be classes; datasets may be pandas tables or functions ``load(files, *, seed)``. Their files are written
    to ``llpbench-code/`` beside the results folder.
    """
    makers = {"methods": _method_plugin, "datasets": _dataset_plugin}
    folder = Path(settings.get("out") or "results/NAME").parent / FOLDER
    files: list[str] = []
    named = dict(settings)
    for kind, make in makers.items():
        given = settings.get(kind)
        one = isinstance(given, type | FunctionType) or _is_frame(given)
        items = [given] if one else given if isinstance(given, list | tuple) else []
        if not any(not isinstance(item, str) for item in items):
            continue
        names = []
        for item in items:
            name, file = (item, "") if isinstance(item, str) else make(item, folder)
            names.append(name)
            files += [file] * (bool(file) and file not in files)
        named[kind] = names
    if files:
        known = settings.get("plugins") or []
        named["plugins"] = [*([known] if isinstance(known, str | Path) else known), *files]
    return named


def _is_frame(item: object) -> bool:
    pandas = sys.modules.get("pandas")  # who has a table has imported it
    return pandas is not None and isinstance(item, pandas.DataFrame)


def _method_plugin(item: object, folder: Path) -> tuple[str, str]:
    """The name of a method and the file of its plugin."""
    if not isinstance(item, type):
        raise UsageError(f"methods: expected names or classes, got {type(item).__name__}.")
    name = str(vars(item).get("name") or _kebab(item.__name__))
    facts: dict[str, Any] = {"name": name, "summary": _summary(item)}
    facts |= {fact: vars(item)[fact] for fact in _METHOD_FACTS if fact in vars(item)}
    parameters = list(inspect.signature(item).parameters.values())
    return name, _write(item, "MethodSpec", "llpbench_methods", facts, parameters, folder)


def _dataset_plugin(item: object, folder: Path) -> tuple[str, str]:
    """The name of a dataset and the file of its plugin."""
    if _is_frame(item):
        return _table_plugin(item, folder)  # type: ignore[arg-type]
    if not isinstance(item, FunctionType):
        raise UsageError(
            f"datasets: expected names, pandas tables or functions load(files, *, seed), got {type(item).__name__}."
        )
    name = _kebab(item.__name__)
    facts = {"name": name, "summary": _summary(item), "classes": getattr(item, "classes", 2)}
    options = [p for p in inspect.signature(item).parameters.values() if p.name not in ("files", "seed")]
    return name, _write(item, "DatasetSpec", "llpbench_datasets", facts, options, folder)


def _table_plugin(frame: pd.DataFrame, folder: Path) -> tuple[str, str]:
    """A table with labels; it is read by the dataset that reads files of a user's own."""
    name, label, bag = (
        str(frame.attrs.get(key, usual)) for key, usual in (("name", "table"), ("label", "label"), ("bag", ""))
    )
    for column in filter(None, (label, bag)):
        if column not in frame.columns:
            raise UsageError(
                f"datasets: the table has no column {column!r}. Name the label column with table.attrs['label'] = ..., "
                "and a column that identifies bags with table.attrs['bag']."
            )
    content = frame.to_csv(index=False).encode()
    digest = hashlib.sha256(content).hexdigest()[:8]
    path = folder / f"{_identifier(name)}_{digest}.csv"
    write_atomically(path, content)
    module, function = _reader_of_tables().split(":")
    bags = f', own_bags="bag", params=(Param("bag", {bag!r}, doc="the column that identifies bags"),)' if bag else ""
    text = f"""from {module} import {function} as read_table
from llpbench import DatasetSpec, Param, hookimpl


@hookimpl
def llpbench_datasets():
    return [DatasetSpec(name={_kebab(name)!r}, factory=f"{{__name__}}:load", classes={frame[label].nunique()}{bags})]


def load(files, *, seed, **options):
    return read_table(files, seed=seed, path={str(path.resolve())!r}, label={label!r}, **options)
"""
    return _kebab(name), _save(f"{text}# {digest}\n", _identifier(name), folder)


def _reader_of_tables() -> str:
    """The factory of the installed dataset that takes the path of a table and the names of its columns."""
    for spec in load_registry().datasets.specs:
        params = {p.name: p for p in spec.params}
        if {"path", "label", "bag"} <= params.keys() and params["path"].names_file:
            return spec.factory
    raise UsageError("datasets: no installed dataset reads tables; give names or functions.")


def _write(
    item: type | FunctionType,
    spec: str,
    hook: str,
    facts: dict[str, Any],
    parameters: list[inspect.Parameter],
    folder: Path,
) -> str:
    params = []
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if not isinstance(p.default, bool | int | float | str | None):
            given = "none" if p.default is p.empty else repr(p.default)
            raise UsageError(
                f"{item.__name__}: parameter {p.name!r} needs a number, text or None as default, got {given}."
            )
        params.append(f"Param({p.name!r}, {p.default!r})")
    stated = ", ".join(f"{name}={value!r}" for name, value in facts.items())
    text = f"""{_source(item)}

from llpbench import {spec} as _Spec, Param as _Param, hookimpl as _hookimpl


@_hookimpl
def {hook}():
    params = ({"".join(f"_{param}, " for param in params)})
    return [_Spec(factory=f"{{__name__}}:{item.__name__}", params=params, {stated})]
"""
    return _save(text, _identifier(facts["name"]), folder)


def _save(text: str, stem: str, folder: Path) -> str:
    """Write a plugin, whose name has a digest of text and folder (a process loads a module name once); its path."""
    digest = hashlib.sha256(f"{folder.resolve()} {text}".encode()).hexdigest()[:8]
    path = folder / f"{stem}_{digest}.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}.") from None
    return str(path)


def _source(item: type | FunctionType) -> str:
    """The source of an object, after that of everything it uses from its module."""
    module = sys.modules.get(item.__module__)
    scope = dict(vars(module)) if module is not None else {}
    parts: dict[str, str] = {}
    _collect(item, item.__name__, item.__module__, scope, parts)
    return "\n\n".join(["from __future__ import annotations", *parts.values()])


def _collect(item: Any, name: str, module: str, scope: dict[str, Any], parts: dict[str, str]) -> None:
    """Add the text that defines a name to ``parts``, after those it needs."""
    if name in parts:
        return
    if isinstance(item, ModuleType):
        parts[name] = f"import {item.__name__} as {name}" if item.__name__ != name else f"import {name}"
    elif isinstance(item, type | FunctionType) and item.__module__ == module:
        text = _definition(item)
        parts[name] = ""  # it may use itself
        for used in _globals_of(text):
            if used in scope and used != name:
                _collect(scope[used], used, module, scope, parts)
        del parts[name]
        parts[name] = text if name == item.__name__ else f"{text}\n\n{name} = {item.__name__}"
    elif isinstance(item, float):
        parts[name] = f"{name} = float({str(item)!r})"  # also if it is not finite
    elif _is_plain(item):
        parts[name] = f"{name} = {item!r}"
    elif (found := _imported(item)) is not None:
        parts[name] = f"from {found[0]} import {found[1]} as {name}"
    else:
        raise UsageError(
            f"{name!r}, a {type(item).__name__}, is used by a class or function that runs in a process of its own, and "
            "cannot be sent there. Make it inside, or import it from a module."
        )


def _imported(item: Any) -> tuple[str, str] | None:
    """Where an object can be imported from: its module and its name there."""
    module, name = getattr(item, "__module__", None), getattr(item, "__qualname__", getattr(item, "__name__", None))
    if not module or module == "__main__" or not name or "<" in name or "." in name:
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is item else None


def _is_plain(item: Any) -> bool:
    if isinstance(item, tuple | list | set | frozenset):
        return all(map(_is_plain, item))
    if isinstance(item, dict):
        return all(_is_plain(part) for pair in item.items() for part in pair)
    return isinstance(item, _PLAIN)


def _definition(item: type | FunctionType) -> str:
    """The source of a class or function at the top level of its cell or file, with decorators.

    ``inspect.getsource`` does not find classes of notebooks.
    """
    code = next(_codes(item), None)
    text = "".join(linecache.getlines(code.co_filename)) if code is not None else ""
    try:
        nodes = ast.parse(text).body
    except SyntaxError:  # a cell with magics: IPython keeps its transformed text, others do not
        nodes = []
    kind = ast.ClassDef if isinstance(item, type) else ast.FunctionDef
    for node in nodes:
        if code is not None and isinstance(node, kind) and node.name == item.__name__:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= code.co_firstlineno <= (node.end_lineno or first):
                return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise UsageError(
        f"the source of {item.__qualname__} was not found. Define it at the top level of a notebook cell or a file, "
        "with at least one method."
    )


def _codes(item: type | FunctionType) -> Iterator[CodeType]:
    if isinstance(item, FunctionType):
        yield item.__code__
        return
    for value in vars(item).values():
        function: Callable[..., Any] | None = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(function, FunctionType) and function.__qualname__.startswith(f"{item.__qualname__}."):
            yield function.__code__


def _globals_of(text: str) -> list[str]:
    """The names that a definition takes from its module, annotations included."""
    found: dict[str, None] = {}
    tables = [symtable.symtable(text, "<cell>", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or top) and not (top and symbol.is_assigned()):
                found[symbol.get_name()] = None
    return list(found)


def _summary(item: type | FunctionType) -> str:
    return (inspect.getdoc(item) or "").partition("\n")[0].rstrip(".")[:100] if item.__doc__ else ""


def _kebab(name: str) -> str:
    """``SoftLabel`` and ``soft_label`` as ``soft-label``."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return re.sub(r"[^a-z0-9]+", "-", parted.lower()).strip("-") or "object"


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", _kebab(name))
