// The main chart: the metric against bag size, with error bars, the bound and the paper's points.

function bagChart(view, styles, width) {
  const {bags, rows, rule, noise} = view;
  const labelled = width >= 560;
  const height = Math.round(Math.max(300, Math.min(470, width * 0.64)));
  const box = {left: 44, right: width - (labelled ? 128 : 14), top: 14, bottom: height - 42};
  const sizes = bags.map(Number);
  const offered = rows.map((r, i) => ({...r, style: styles.get(r.method), dodge: i - (rows.length - 1) / 2}));
  const points = offered.map((r) => ({
    ...r,
    points: bags.map((bag) => drawnScore(view.score(cellOf(r.row, noise, bag)))),
  }));
  const paper = paperPoints(view, offered);
  const bound = plot(view.bound.mean);
  const bagBounds = view.bagBounds.map((b) => plot(b.mean));
  const values = points.flatMap((r) => r.points.map((p) => plot(p.at)));
  const main = points
    .filter((r) => !r.control)
    .flatMap((r) => r.points)
    .filter((p) => plot(p.at) !== null);
  const ends = main.flatMap((p) => [p.at - (p.spread || 0), p.at + (p.spread || 0)]);
  const rest = points.filter((r) => r.control).flatMap((r) => r.points.map((p) => plot(p.at)));
  const means = withoutWorst(
    main.map((p) => p.at),
    view,
  );
  const domain = methodDomain(
    [...trimmed(ends, means, view.percent), bound, ...bagBounds, ...paper.map((p) => p.mean)],
    rest,
    view,
  );
  const outside = values.some((v) => v !== null && (v < domain[0] || v > domain[1]));
  const y = linear(domain, [box.bottom, box.top]);
  const pad = bags.length > 1 ? Math.min(34, (box.right - box.left) / bags.length / 2) : 0;
  const x = log([sizes[0] || 1, sizes[sizes.length - 1] || 1], [box.left + pad, box.right - pad]);
  const gap = bags.length > 1 ? Math.min(5, ((x(sizes[1]) - x(sizes[0])) * 0.62) / Math.max(1, rows.length - 1)) : 6;
  const at = (r, i) => x(sizes[i]) + r.dodge * gap;

  const series = restFirst(points, view.rest).map((r) =>
    s(
      'g',
      {class: `series${view.rest.has(r.method) ? ' rest' : ''}`, 'data-m': r.style.id},
      s('path', {
        class: `line ${r.style.hue}${r.control ? ' dashed' : ''}`,
        d: pathOf(r.points.map((p, i) => (plot(p.at) === null ? null : [at(r, i), y(p.at)]))),
      }),
      r.points.map((p, i) =>
        plot(p.at) === null
          ? null
          : [
              p.spread && p.at >= domain[0] && p.at <= domain[1]
                ? s('path', {
                    class: `bar ${r.style.hue}`,
                    d: errorBar(at(r, i), y(p.at - p.spread), y(p.at + p.spread)),
                  })
                : null,
              marker(
                r.style,
                at(r, i),
                y(p.at),
                4,
                spot(r.style, `${r.method} · bag ${bags[i]} · ${toldMean(view, p)}`, r.method, bags[i]),
              ),
            ],
      ),
    ),
  );
  const hollow = paper.map((p) =>
    marker(p.style, x(Number(p.bag)) + p.dodge * gap, y(p.mean), 4.2, {
      class: `hollow${view.rest.has((offered.find((r) => r.style === p.style) || p).method) ? ' rest' : ''}`,
      ...spot(p.style, `paper: ${p.label} · bag ${p.bag} · ${view.meanSd(p)}`, p.method, p.bag),
    }),
  );
  const labels = labelled
    ? spread(
        points.flatMap((r) => {
          const last = r.points
            .map((p, i) => [p, i])
            .filter(([p]) => plot(p.at) !== null)
            .pop();
          return last
            ? [
                {
                  r,
                  off: last[0].at < domain[0] ? '↓' : last[0].at > domain[1] ? '↑' : '',
                  y: Math.min(box.bottom, Math.max(box.top, y(last[0].at))),
                  x: at(r, last[1]),
                },
              ]
            : [];
        }),
        14,
        box.top,
        box.bottom,
      )
    : [];

  return figure({
    kind: 'bags',
    width,
    height,
    title: `${capital(view.metric)} against bag size`,
    note:
      `Mean over seeds, bars are one standard deviation.${view.rest.size ? ` Point at a grey line to see its method.` : ''} Rule ${rule}${noise === 'none' ? '' : `, noise ${noise}`}.` +
      drawnNote(points.flatMap((r) => r.points)) +
      (outside ? ' Lines that leave the chart are in the data below it.' : '') +
      (paper.length
        ? ` Hollow: as the paper reports it, rule ${[...new Set(paper.map((p) => str(p.rule)))].join(', ')}.`
        : ''),
    describe: `${plural(rows.length, 'line')}, one for each method; bag sizes ${bags.join(', ')} on a logarithmic axis. The table below has the numbers.`,
    empty: values.some((v) => v !== null) ? null : 'No number to draw.',
    draw: [
      yAxis(y, ticks(domain, 6), box.left, box.right),
      xAxis((v) => x(Number(v)), bags, box.bottom),
      axisTitle((box.left + box.right) / 2, height - 6, 'bag size'),
      bound === null ? null : boundLine(view, view.bound, box, y(bound)),
      bagBounds.map((b, i) =>
        b === null
          ? null
          : s('g', {class: 'bound'}, s('line', {x1: x(sizes[i]) - 16, x2: x(sizes[i]) + 16, y1: y(b), y2: y(b)})),
      ),
      clipped(box, series, hollow),
      labels.map((l) =>
        s(
          'g',
          {class: `end${view.rest.has(l.r.method) ? ' rest' : ''}`, 'data-m': l.r.style.id},
          l.off ? null : s('path', {class: `lead ${l.r.style.hue}`, d: `M${l.x + 7},${l.y}L${box.right + 4},${l.at}`}),
          s('text', {x: box.right + 8, y: l.at + 4}, `${clip(l.r.method, 16)}${l.off ? ` ${l.off}` : ''}`),
        ),
      ),
    ],
    columns: ['method', ...bags.map((bag) => `bag ${bag}`)],
    rows: [
      ...points.map((r) => [
        r.method,
        ...r.points.map((p, i) =>
          num(p.mean) === null ? str(cellOf(r.row, noise, bags[i]).status || 'missing') : toldMean(view, p),
        ),
      ]),
      ...(bagBounds.some((b) => b !== null)
        ? [['bound', ...view.bagBounds.map((b) => (num(b.mean) === null ? '–' : view.meanSd(b)))]]
        : []),
      ...(bound === null
        ? []
        : [[`${str(view.bound.method) || 'bound'} (bound)`, ...bags.map(() => view.meanSd(view.bound))]]),
      ...[...new Set(paper.map((p) => p.label))].map((label) => [
        `${label} (paper)`,
        ...bags.map((bag) => {
          const p = paper.find((q) => q.label === label && q.bag === bag);
          return p ? view.meanSd(p) : '–';
        }),
      ]),
    ],
  });
}

/** A score with the mean at which it is drawn; its spread is of the same seeds. */
const drawnScore = (score) => ({
  ...score,
  at: drawnOf(score),
  spread: plot(own(score, 'shared_sd') ? score.shared_sd : score.sd),
});

const errorBar = (x, low, high) => `M${x - 2.5},${low}h5M${x},${low}V${high}M${x - 2.5},${high}h5`;

/** One wild error bar must not flatten all the others: bars may leave the means' range by half of it, no more. */
function trimmed(ends, values, percent) {
  const range = extent(values);
  if (!range) return [];
  const air = Math.max((range[1] - range[0]) * 0.25, percent ? 1 : 0);
  return [...values, ...ends.map((v) => Math.max(range[0] - air, Math.min(range[1] + air, v)))];
}

function boundLine(view, bound, box, y) {
  const label = `${str(bound.method) || 'bound'} ${view.number(bound.mean)}`;
  return s(
    'g',
    {class: 'bound'},
    s('line', {x1: box.left, x2: box.right, y1: y, y2: y}),
    s('text', {x: box.right, y: y < box.top + 16 ? y + 14 : y - 5, 'text-anchor': 'end'}, clip(label, 40)),
  );
}

/** The paper's points: in the colour of the method they belong to, or of one of that name with other settings; else neutral. */
function paperPoints(view, offered) {
  const {bags} = view;
  const points = [];
  for (const r of offered) {
    for (const bag of bags) {
      const paper = view.paper(r.row, bag);
      if (paper && plot(paper.mean) !== null)
        points.push({...paper, label: r.method, method: r.method, style: r.style, dodge: r.dodge, bag});
    }
  }
  const known = new Set(view.all.map((row) => str(row.method)));
  for (const row of view.papers) {
    if (known.has(str(row.name))) continue;
    const kin = row.name ? offered.find((r) => str(r.row.name) === str(row.name)) : null;
    if (!kin && view.state.filter) continue;
    for (const bag of bags) {
      const cell = dict(dict(row.cells)[bag]);
      if (plot(cell.mean) === null || points.some((p) => p.bag === bag && p.mean === cell.mean)) continue;
      points.push({
        ...cell,
        label: str(row.method),
        rule: str(row.rule),
        style: kin ? kin.style : {hue: 'kn', shape: 0, id: 'paper'},
        dodge: kin ? kin.dodge : 0,
        method: undefined,
        bag,
      });
    }
  }
  return points;
}
