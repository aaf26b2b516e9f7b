// Learning curves, on the page of a results folder: the value on held-out data by report, a line for each seed.

// The points of a curve by the stages of its fit, in order; one stage without a name if it has none.
function stages(curve) {
  const starts = Object.entries(dict(curve.starts)).sort(by(([, n]) => n));
  if (!starts.length) return [['', curve.points]];
  return starts.map(([name, from], i) => [
    name,
    curve.points.filter(([n]) => n >= from && (i + 1 === starts.length || n < starts[i + 1][1])),
  ]);
}

function curveChart(view, styles, width) {
  const {rule, noise, state, dataset} = view;
  const shown = new Set(view.rows.map((r) => r.method));
  const curves = list(board.curves)
    .map(dict)
    .filter(
      (c) =>
        c.dataset === dataset.name &&
        c.noise === noise &&
        String(c.bag) === state.bag &&
        shown.has(str(c.method)) &&
        own(c.values, rule),
    )
    .map((c) => ({
      ...c,
      style: styles.get(str(c.method)),
      chosen: num(dict(c.selected)[rule]),
      points: list(dict(c.values)[rule])
        .map((v, i) => [num(list(c.reports)[i]), plot(v)])
        .filter(([, v]) => v !== null),
    }))
    .filter((c) => c.points.length > 1);
  if (!curves.length) return null;
  const {title, higher} = dict(list(board.rules).find((r) => str(dict(r).name) === rule));
  const height = Math.round(Math.max(280, Math.min(400, width * 0.4)));
  const box = {left: 52, right: width - 14, top: 14, bottom: height - 42};
  const values = curves.flatMap((c) => c.points.map(([, v]) => v));
  const range = valueDomain(withoutWorst(values, {percent: false, lowIsBest: higher === false}), false);
  const last = Math.max(...curves.flatMap((c) => c.points.map(([n]) => n)));
  const x = linear([1, Math.max(2, last)], [box.left + 6, box.right - 6]);
  const y = linear(range, [box.bottom, box.top]);
  const told = (c) => `${str(c.method)} · seed ${str(c.seed)}`;
  const series = [...curves].sort(by((c) => !view.rest.has(str(c.method)))).map((c) =>
    s(
      'g',
      {class: `series${view.rest.has(str(c.method)) ? ' rest' : ''}`, 'data-m': c.style.id, 'data-tip': told(c)},
      stages(c).map(([name, points], i) => [
        s('path', {class: `line thin ${c.style.hue}`, d: pathOf(points.map(([n, v]) => [x(n), y(v)]))}),
        i && points.length
          ? s('path', {
              class: `line thin ${c.style.hue}`,
              d: `M${x(points[0][0])},${y(points[0][1]) - 7}v14`,
              'data-tip': `${told(c)} · ${name} starts at report ${points[0][0]}`,
            })
          : null,
      ]),
      c.points
        .filter(([n]) => n === c.chosen)
        .map(([n, v]) =>
          marker(
            c.style,
            x(n),
            y(v),
            4,
            spot(c.style, `${told(c)} · report ${n}: ${amount(v)}`, str(c.method), state.bag),
          ),
        ),
    ),
  );
  const selected = (c) => (c.points.find(([n]) => n === c.chosen) || [null, null])[1];
  return figure({
    kind: 'curves',
    width,
    height,
    title: `Learning curves, ${bagSize(dataset, state.bag)}`,
    note: `${capital(str(title) || rule)} on held-out data by report, rule ${rule}${higher === false ? ' (low is best)' : ''}; a line for each seed${curves.some((c) => stages(c).length > 1) ? ', cut where a stage of the fit starts' : ''}. Markers: the reports that the rule selected.`,
    describe: `${plural(curves.length, 'line')} over at most ${plural(last, 'report')}.`,
    draw: [
      yAxis(y, ticks(range, 6), box.left, box.right),
      xAxis(x, [...new Set([1, ...ticks([1, Math.max(2, last)], 8).filter(Number.isInteger)])], box.bottom),
      axisTitle((box.left + box.right) / 2, height - 6, 'report'),
      clipped(box, series),
    ],
    columns: ['method', 'seed', 'reports', 'selected report', 'value'],
    rows: curves.map((c) => [
      str(c.method),
      str(c.seed),
      String(c.points[c.points.length - 1][0]),
      str(c.chosen),
      amount(selected(c)),
    ]),
  });
}
