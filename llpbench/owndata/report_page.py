"""A model's report as one self-contained HTML page, in light and dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from llpbench.contracts.errors import printable
from llpbench.owndata.judging.facts import NO_FACTS, CalibrationPoint

if TYPE_CHECKING:
    from llpbench.owndata.report import Report

_SIZE, _LEFT, _TOP = 300, 44, 10
_COLOURS = 6

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --quiet: #5c6675; --line: #dde2ea; --paper: #f6f7f9; --card: #ffffff;
  --good: #18794e; --bad: #b4540a; --c0: #2f6fdb; --c1: #c2410c; --c2: #15803d; --c3: #9333ea; --c4: #0e7490;
  --c5: #be185d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --quiet: #98a2b3; --line: #2c3442; --paper: #12161d;
  --card: #1a2029; --good: #4cc38a; --bad: #f5a15c; --c0: #6ea1ff; --c1: #fb923c; --c2: #4ade80; --c3: #c084fc;
  --c4: #22d3ee; --c5: #f472b6; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 28px 16px 48px; display: grid; gap: 16px;
  grid-template-columns: repeat(2, minmax(0, 1fr)); }
header, section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px 20px; }
header, .wide { grid-column: 1 / -1; }
h1 { font-size: 22px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 10px; }
p { margin: 4px 0; } .quiet { color: var(--quiet); font-size: 13px; overflow-wrap: anywhere; }
.verdict { font-weight: 600; color: var(--bad); } .verdict.good { color: var(--good); }
ul { margin: 0; padding-left: 20px; } li { margin: 4px 0; } .warn { border-left: 4px solid var(--bad); }
table { width: 100%; border-collapse: collapse; } td { padding: 4px 0; border-top: 1px solid var(--line);
  vertical-align: top; } tr:first-child td { border-top: 0; } td + td { text-align: right; padding-left: 12px; }
td.name { color: var(--quiet); white-space: pre-wrap; } .effects td.name { color: var(--ink); overflow-wrap: anywhere; }
.bar { height: 10px; border-radius: 3px; background: var(--c0); min-width: 1px; } td.bars { width: 40%; }
.effects td:last-child { white-space: nowrap; }
svg { width: 100%; max-width: 420px; display: block; margin: 0 auto; } svg text { fill: var(--quiet); font-size: 11px; }
.axis { stroke: var(--line); } .even { stroke: var(--quiet); stroke-dasharray: 4 4; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 14px; font-size: 13px; } .legend b { font-weight: 400; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 5px; }
@media (max-width: 640px) { main { grid-template-columns: minmax(0, 1fr); } td.bars { width: 34%; } }
"""


def make_page(report: Report) -> str:
    """The page of a report. Text from the user's table is escaped."""
    title = f"{report.method}: report"
    names = ", ".join(report.classes)
    head = [
        f"<h1>{text_of(report.method)}</h1>",
        f'<p class="quiet">{len(report.columns):,} columns; classes {text_of(names)}; {text_of(_settings(report))}</p>',
    ]
    if report.facts is None:
        head.append(f"<p>{NO_FACTS}</p>")
        return page(title, [f"<header>{''.join(head)}</header>"])
    good = " good" if report.is_better else ""
    head.append(f'<p class="verdict{good}">{text_of(report.verdict())}</p>')
    parts = [f"<header>{''.join(head)}</header>"]
    if report.facts.warnings:
        items = "".join(f"<li>{text_of(text)}</li>" for text in report.facts.warnings)
        parts.append(f'<section class="wide warn"><h2>Warnings</h2><ul>{items}</ul></section>')
    (score_title, score), (card_title, card), (points_title, _) = report.tables()
    parts.append(f"<section><h2>{score_title}</h2>{_rows(score)}</section>")
    parts.append(f"<section><h2>{card_title}</h2>{_rows(card)}</section>")
    chart = _chart(report.facts.points, report.classes)
    parts.append(f"<section><h2>{points_title}</h2>{chart}</section>")
    parts.append(f"<section><h2>Importance of columns</h2>{_effects(report)}</section>")
    return page(title, parts)


def make_frame(content: str, title: str) -> str:
    """A page inside a notebook."""
    return (
        f'<iframe srcdoc="{escape(content)}" title="{text_of(title)}" '
        'style="width:100%;height:640px;border:0"></iframe>'
    )


def make_note(method: str, columns: int, classes: tuple[str, ...], verdict: str, warnings: tuple[str, ...]) -> str:
    """A few lines about a model, for a notebook."""
    items = "".join(f"<li>{text_of(text)}</li>" for text in warnings)
    names = ", ".join(map(text_of, classes))
    return f"<b>{text_of(method)}</b>: {columns:,} columns, classes {names}<p>{text_of(verdict)}</p><ul>{items}</ul>"


def page(title: str, parts: list[str]) -> str:
    """A page of sections."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{text_of(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n" + "\n".join(parts) + "\n</main>\n</body>\n</html>\n"
    )


def _settings(report: Report) -> str:
    return ", ".join(f"{name}={value}" for name, value in report.params.items()) or "no parameters"


def _rows(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f'<tr><td class="name">{text_of(name)}</td><td>{text_of(value)}</td></tr>' for name, value in rows)
    return f"<table>{cells}</table>"


def _effects(report: Report) -> str:
    if report.effects is None:
        return f"<p>Unknown: {text_of(report.why_no_effects)}.</p>"
    top, bars = max(max(effect.loss for effect in report.effects), 1e-12), report.is_better
    rows = "".join(
        f'<tr><td class="name">{text_of(effect.column)}</td><td class="bars">'
        + (f'<div class="bar" style="width:{100 * max(effect.loss, 0.0) / top:.1f}%"></div>' if bars else "")
        + "</td>"
        + f"<td>{effect.loss:.3f} ± {effect.sd:.3f}</td></tr>"
        for effect in report.effects
    )
    note = "Loss of log-likelihood per held-out bag if the column is shuffled, in nats."
    return f'<p class="quiet">{note}</p><table class="effects">{rows}</table>'


def _chart(points: tuple[CalibrationPoint, ...], classes: tuple[str, ...]) -> str:
    """Known against predicted proportions; they are equal on the dashed line."""
    values = [value for point in points for value in (point.predicted, point.known)]
    room = 0.08 * (max(values) - min(values)) + 0.01
    low = max(min(values) - room, min(0.0, *values))
    high = min(max(values) + room, max(1.0, *values))

    def x(value: float) -> float:
        return _LEFT + _SIZE * (value - low) / (high - low)

    def y(value: float) -> float:
        return _TOP + _SIZE - _SIZE * (value - low) / (high - low)

    lines = []
    for step in range(5):
        at = low + (high - low) * step / 4
        label = f"{100 * at:.0f} %"
        lines.append(f'<line class="axis" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{y(low):.1f}" y2="{y(high):.1f}"/>')
        lines.append(f'<line class="axis" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y(at):.1f}" y2="{y(at):.1f}"/>')
        lines.append(f'<text x="{x(at):.1f}" y="{y(low) + 16:.1f}" text-anchor="middle">{label}</text>')
        lines.append(f'<text x="{_LEFT - 6}" y="{y(at) + 4:.1f}" text-anchor="end">{label}</text>')
    lines.append(f'<line class="even" x1="{x(low):.1f}" y1="{y(low):.1f}" x2="{x(high):.1f}" y2="{y(high):.1f}"/>')
    for point in points:
        radius = min(3.0 + point.bags**0.5, 9.0)
        said = f"{classes[point.label]}: predicted {100 * point.predicted:.1f} %, known {100 * point.known:.1f} %"
        lines.append(
            f'<circle cx="{x(point.predicted):.1f}" cy="{y(point.known):.1f}" r="{radius:.1f}" '
            f'fill="var(--c{point.label % _COLOURS})" fill-opacity=".65"><title>{text_of(said)}</title></circle>'
        )
    lines.append(f'<text x="{x((low + high) / 2):.1f}" y="{y(low) + 34:.1f}" text-anchor="middle">predicted</text>')
    lines.append(f'<text x="{x(low) + 4:.1f}" y="{y(high) + 12:.1f}">known</text>')
    shown = sorted({point.label for point in points})
    legend = "".join(
        f'<b><span class="dot" style="background:var(--c{label % _COLOURS})"></span>{text_of(classes[label])}</b>'
        for label in shown
    )
    size = f"0 0 {_LEFT + _SIZE + 28} {_TOP + _SIZE + 42}"
    return f'<svg viewBox="{size}" role="img">{"".join(lines)}</svg><div class="legend">{legend}</div>'


def text_of(value: object) -> str:
    """Text that is safe in HTML."""
    return escape(printable(str(value)))
