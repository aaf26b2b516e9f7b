// A critical-difference diagram, turned so that names have room: mean ranks with intervals down the page, and a bar beside
// methods that no test tells apart.

function differenceChart(view, width) {
  return rankFigure(view, width, list(view.found.bars), {
    title: 'Critical differences',
    note: 'Mean rank (1 is best) and its 95 % interval. A bar on the right joins methods without a significant difference: Wilcoxon over sources, all pairs corrected together (Holm).',
  });
}

/** The same where nothing is tested. */
function rankChart(view, width) {
  const note = `Mean rank (1 is best)${view.all.some((r) => num(r.low) !== null) ? ' and its 95 % interval' : ''}.`;
  return rankFigure(view, width, [], {title: 'Mean ranks', note});
}

function rankFigure(view, width, bars, {title, note}) {
  const {all} = view;
  const step = 26;
  const names = Math.min(170, Math.max(90, width * 0.3));
  const gap = Math.min(12, 70 / Math.max(1, bars.length));
  const box = {left: names, right: width - 12 - gap * bars.length - 6, top: 26, bottom: 26 + step * all.length};
  const ends = all.flatMap((r) => [plot(r.low), plot(r.high), plot(r.rank)]).filter((v) => v !== null);
  const domain = [Math.max(1, Math.floor(Math.min(...ends))), Math.max(2, Math.ceil(Math.max(...ends)))];
  const x = linear(domain, [box.left + 8, box.right - 8]);
  const y = (i) => box.top + step * (i + 0.5);
  const marks = ticks(domain, Math.max(4, Math.floor((box.right - box.left) / 60)));
  const words = ([from, to]) =>
    all
      .slice(from, to + 1)
      .map((r) => str(r.method))
      .join(', ');
  const line = (r, i) => {
    const method = str(r.method);
    const style = styleOf(method);
    const tip = `${method} · mean rank ${fixed(r.rank)}${num(r.low) === null ? '' : ` (${fixed(r.low)} to ${fixed(r.high)})`}`;
    return s(
      'g',
      {class: 'series', 'data-m': style.id, 'data-tip': tip},
      s('text', {x: names - 10, y: y(i) + 4, 'text-anchor': 'end'}, clip(method, Math.floor((names - 16) / 6.6))),
      s('rect', {
        class: 'hitbox',
        x: box.left,
        y: y(i) - step / 2,
        width: Math.max(0, box.right - box.left),
        height: step,
      }),
      plot(r.low) === null
        ? null
        : s('line', {class: `line ${style.hue}`, x1: x(r.low), x2: x(r.high), y1: y(i), y2: y(i)}),
      plot(r.rank) === null ? null : marker(style, x(r.rank), y(i), 5),
    );
  };
  return figure({
    kind: 'ranks',
    width,
    height: box.bottom + 10,
    title,
    note,
    describe: bars.length
      ? `No significant difference: ${bars.map(words).join('; ')}.`
      : 'Mean ranks of the methods, the best first.',
    draw: [
      s(
        'g',
        {class: 'axis', 'aria-hidden': 'true'},
        marks.map((v) => [
          s('line', {class: 'grid', x1: x(v), x2: x(v), y1: box.top, y2: box.bottom}),
          s('text', {x: x(v), y: 16, 'text-anchor': 'middle'}, String(v)),
        ]),
      ),
      all.map(line),
      bars.map((bar, i) => {
        const at = box.right + 10 + gap * i;
        return s('line', {
          class: 'clique',
          x1: at,
          x2: at,
          y1: y(bar[0]) - 8,
          y2: y(bar[1]) + 8,
          'data-tip': `no significant difference: ${words(bar)}`,
        });
      }),
    ],
    columns: ['method', 'mean rank', 'low', 'high', 'separated from the first'],
    rows: all.map((r) => [
      str(r.method),
      fixed(r.rank),
      fixed(r.low),
      fixed(r.high),
      r.separated === true ? 'yes' : r.separated === false ? 'no' : '',
    ]),
  });
}
