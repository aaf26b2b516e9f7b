// The price: the metric against seconds, and who is beaten by nobody in both.

function costChart(view, styles, width) {
  const {state, noise} = view;
  const bag = state.bag;
  const points = view.rows
    .map((r) => {
      const cell = cellOf(r.row, noise, bag);
      return {...r, cell, style: styles.get(r.method), time: fitOf(cell), score: drawnScore(view.score(cell))};
    })
    .filter((p) => p.time !== null && p.time > 0 && plot(p.time) !== null && plot(p.score.at) !== null);
  const front = paretoFront(view, points);
  points.forEach((p) => {
    p.front = front.has(p.method);
  });
  const height = Math.round(Math.max(300, Math.min(400, width * 0.62)));
  const box = {left: 44, right: width - 18, top: 14, bottom: height - 42};
  const times = extent(points.map((p) => p.time)) || [1, 10];
  const reach =
    times[1] / times[0] < 4 ? [times[0] / 3, times[1] * 3] : [times[0] / 1.6, times[1] * (width < 480 ? 3 : 2.2)];
  const found = view.boundOf(view.rule, bag);
  const bound = plot(found.mean);
  const domain = methodDomain(
    [...points.filter((p) => !p.control).map((p) => p.score.at), bound],
    points.filter((p) => p.control).map((p) => p.score.at),
    view,
  );
  const outside = points.filter((p) => p.score.at < domain[0] || p.score.at > domain[1]);
  const drawn = points.filter((p) => !outside.includes(p));
  const x = log(reach, [box.left, box.right]);
  const y = linear(domain, [box.bottom, box.top]);
  const edge = points.filter((p) => p.front).sort(by((p) => p.time));
  const steps = stairs(
    edge.map((p) => [x(p.time), y(p.score.at)]),
    box.right,
  );
  const taken = drawn.map((p) => ({
    x0: x(p.time) - 6,
    x1: x(p.time) + 6,
    y0: y(p.score.at) - 6,
    y1: y(p.score.at) + 6,
  }));
  if (bound !== null) taken.push({x0: box.right - 150, x1: box.right, y0: y(bound) - 2, y1: y(bound) + 16});
  const mark = (p) =>
    s(
      'g',
      {'data-m': p.style.id, class: p.front ? 'front' : ''},
      marker(
        p.style,
        x(p.time),
        y(p.score.at),
        5,
        spot(p.style, `${p.method} · ${toldMean(view, p.score)} · ${seconds(p.time)}`, p.method, bag),
      ),
      placeLabel(clip(p.method, 18), x(p.time), y(p.score.at), box, taken),
    );
  return figure({
    kind: 'cost',
    width,
    height,
    title: `${capital(view.metric)} against seconds, ${bagSize(view.dataset, bag)}`,
    note:
      `Seconds of one fit on a logarithmic axis; ${view.lowIsBest ? 'down' : 'up'} and to the left is better.${edge.length ? ' The line is the Pareto front: no method is both faster and better.' : ''}` +
      drawnNote(points.map((p) => p.score)) +
      (outside.length
        ? ` Outside the axis: ${outside.map((p) => `${p.method} ${view.number(p.score.at)} in ${seconds(p.time)}`).join(', ')}.`
        : ''),
    describe: `${plural(points.length, 'method')}; on the Pareto front: ${edge.map((p) => p.method).join(', ') || 'not given'}.`,
    empty: points.length ? null : 'No method has both a number and a time here.',
    draw: [
      yAxis(y, ticks(domain, 6), box.left, box.right),
      xAxis(x, logTicks(reach), box.bottom, short),
      axisTitle((box.left + box.right) / 2, height - 6, 'seconds'),
      bound === null ? null : boundLine(view, found, box, y(bound)),
      s('path', {class: 'frontier', d: pathOf(steps)}),
      [...drawn].sort(by((p) => -p.front)).map(mark),
    ],
    columns: ['method', view.metric, 'seconds', 'on the front'],
    rows: [...points]
      .sort(by((p) => p.time))
      .map((p) => [p.method, toldMean(view, p.score), amount(p.time), p.front ? 'yes' : 'no']),
  });
}

/** A front as a line of steps that goes on to the right edge. */
function stairs(points, right) {
  const line = points.flatMap((p, i) => (i ? [[p[0], points[i - 1][1]], p] : [p]));
  return line.length ? [...line, [right, line[line.length - 1][1]]] : [];
}

/** Methods that nobody beats in both; as the board says where it says it (without noise), else by the same rule. */
function paretoFront(view, points) {
  const given = dict(dict(dict(view.dataset.pareto)[view.state.metric])[view.rule])[view.state.bag];
  if (view.noise === 'none' && Array.isArray(given)) return new Set(given.map(str));
  const better = (a, b) => (view.lowIsBest ? a <= b : a >= b);
  const rivals = points.filter((p) => !p.control && fairOf(p.score) !== null);
  const beaten = (p) =>
    rivals.some(
      (q) =>
        q !== p && q.time <= p.time && better(q.score.at, p.score.at) && (q.time < p.time || q.score.at !== p.score.at),
    );
  return new Set(rivals.filter((p) => !beaten(p)).map((p) => p.method));
}

/** A label beside a point, where it covers nothing; left out of the drawing when there is no such place. */
function placeLabel(text, x, y, box, taken) {
  const w = text.length * 6.3 + 4;
  const options = [
    [9, 4, 'start'],
    [-9, 4, 'end'],
    [0, -10, 'middle'],
    [0, 17, 'middle'],
    [7, -8, 'start'],
    [7, 15, 'start'],
    [-7, -8, 'end'],
    [-7, 15, 'end'],
  ];
  for (const [dx, dy, anchor] of options) {
    const x0 = x + dx - (anchor === 'end' ? w : anchor === 'middle' ? w / 2 : 0);
    const area = {x0, x1: x0 + w, y0: y + dy - 10, y1: y + dy + 2};
    const free =
      area.x0 > box.left &&
      area.x1 < box.right + 12 &&
      area.y0 > box.top - 8 &&
      area.y1 < box.bottom &&
      !taken.some((t) => t.x0 < area.x1 && t.x1 > area.x0 && t.y0 < area.y1 && t.y1 > area.y0);
    if (!free) continue;
    taken.push(area);
    return s('text', {class: 'point-label', x: x + dx, y: y + dy, 'text-anchor': anchor}, text);
  }
  return null;
}

/** All methods over all datasets: the score between the best control and the bound, against seconds. */
function overallCostChart(view, width) {
  const points = view.all
    .map((r) => ({
      method: str(r.method),
      style: styleOf(str(r.method)),
      time: num(r.seconds),
      score: plot(num(r.scaled)),
    }))
    .filter((p) => p.time !== null && p.time > 0 && p.score !== null);
  const beaten = (p) =>
    points.some((q) => q.time <= p.time && q.score >= p.score && (q.time < p.time || q.score > p.score));
  const front = points.filter((p) => !beaten(p)).sort(by((p) => p.time));
  const height = Math.round(Math.max(320, Math.min(420, width * 0.8)));
  const box = {left: 44, right: width - 18, top: 14, bottom: height - 42};
  const times = extent(points.map((p) => p.time)) || [1, 10];
  const reach = [times[0] / 1.8, times[1] * 2.4];
  const domain = valueDomain(
    points.map((p) => p.score),
    false,
  );
  const x = log(reach, [box.left, box.right]);
  const y = linear(domain, [box.bottom, box.top]);
  const taken = points.map((p) => ({x0: x(p.time) - 6, x1: x(p.time) + 6, y0: y(p.score) - 6, y1: y(p.score) + 6}));
  const steps = stairs(
    front.map((p) => [x(p.time), y(p.score)]),
    box.right,
  );
  return figure({
    kind: 'allcost',
    width,
    height,
    title: 'Score against seconds',
    note: 'Score: the best control is 0, the bound (trained on true labels) 1. Median seconds of a fit. Line: Pareto front.',
    describe: plural(points.length, 'method'),
    empty: points.length ? null : 'No method has both a score and a time here.',
    draw: [
      yAxis(y, ticks(domain, 6), box.left, box.right),
      xAxis(x, logTicks(reach), box.bottom, short),
      axisTitle((box.left + box.right) / 2, height - 6, 'seconds'),
      s('path', {class: 'frontier', d: pathOf(steps)}),
      points.map((p) =>
        s(
          'g',
          {'data-m': p.style.id, 'data-tip': `${p.method} · ${fixed(p.score)} · ${seconds(p.time)}`},
          marker(p.style, x(p.time), y(p.score), 5),
          placeLabel(clip(p.method, 18), x(p.time), y(p.score), box, taken),
        ),
      ),
    ],
    columns: ['method', 'score', 'seconds', 'on the front'],
    rows: [...points]
      .sort(by((p) => p.time))
      .map((p) => [p.method, fixed(p.score), amount(p.time), front.includes(p) ? 'yes' : 'no']),
  });
}
