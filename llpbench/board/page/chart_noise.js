// The metric against the noise on counts.

/** Positions of noise levels: falling epsilon on a logarithmic axis, no noise set apart on the left. */
function noisePositions(dataset, noises) {
  const levels = noises
    .map((noise) => ({noise, epsilon: epsilonOf(dataset, noise)}))
    .filter((l) => l.epsilon !== null && l.epsilon > 0);
  levels.sort(by((l) => (l.epsilon === Infinity ? -1e9 : -Math.log(l.epsilon))));
  const finite = levels.filter((l) => l.epsilon !== Infinity).map((l) => Math.log(l.epsilon));
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const free = levels.length > finite.length ? 0.42 : 0;
  return levels.map((l) => ({
    ...l,
    at:
      l.epsilon === Infinity
        ? 0
        : high === low
          ? free
            ? 1
            : 0.5
          : free + (1 - free) * ((high - Math.log(l.epsilon)) / (high - low)),
  }));
}

function noiseChart(view, styles, width) {
  const {rule, dataset} = view;
  const levels = noisePositions(dataset, list(dataset.noises));
  const noisy = list(dataset.noises).filter((noise) => epsilonOf(dataset, noise) !== Infinity);
  const bags = list(dataset.bags)
    .map(String)
    .filter((bag) => noisy.some((noise) => bagsAt(dataset, noise).includes(bag)));
  const columns = Math.max(1, Math.min(bags.length, Math.floor(width / 148)));
  const w = (width - 8) / columns;
  const tall = 220;
  const height = Math.ceil(bags.length / columns) * tall + 4;
  const rows = view.rows.map((r) => ({...r, style: styles.get(r.method)}));
  const at = (r, noise, bag) => levelOf(view.score(cellOf(r.row, noise, bag)));
  const told = (p) => [view.meanSd(p), str(p.note)].filter(Boolean).join(' · ');
  const scoresOf = (some) => some.flatMap((r) => bags.flatMap((bag) => levels.map((l) => at(r, l.noise, bag))));
  const meansOf = (some) => scoresOf(some).map((p) => plot(p.mean));
  const values = meansOf(rows);
  const domain = methodDomain(meansOf(rows.filter((r) => !r.control)), meansOf(rows.filter((r) => r.control)), view);
  const panel = (bag, i) => {
    const [left, top] = [(i % columns) * w + 36, Math.floor(i / columns) * tall + 24];
    const [right, bottom] = [left + w - 48, top + tall - 52];
    const x = linear([0, 1], [left + 8, right - 8]);
    const y = linear(domain, [bottom, top]);
    return s(
      'g',
      null,
      s('text', {class: 'column', x: left, y: top - 9}, bagName(dataset, bag)),
      yAxis(y, ticks(domain, 4), left, right),
      s(
        'g',
        {class: 'axis'},
        levels.map((l) => [
          s('line', {class: 'tick', x1: x(l.at), x2: x(l.at), y1: bottom, y2: bottom + 4}),
          s(
            'text',
            {x: x(l.at), y: bottom + 17, 'text-anchor': 'middle'},
            l.epsilon === Infinity ? 'none' : `ε ${short(l.epsilon)}`,
          ),
        ]),
      ),
      clipped(
        {left, right, top, bottom},
        restFirst(rows, view.rest).map((r) => {
          const points = levels.map((l) => ({l, p: at(r, l.noise, bag)})).filter(({p}) => plot(p.mean) !== null);
          return s(
            'g',
            {class: `series${view.rest.has(r.method) ? ' rest' : ''}`, 'data-m': r.style.id},
            s('path', {
              class: `line ${r.style.hue}${r.control ? ' dashed' : ''}`,
              d: pathOf(points.map(({l, p}) => [x(l.at), y(p.mean)])),
            }),
            points.map(({l, p}) =>
              marker(
                r.style,
                x(l.at),
                y(p.mean),
                3.2,
                spot(r.style, `${r.method} · ${bagName(dataset, bag)} · noise ${l.noise} · ${told(p)}`),
              ),
            ),
          );
        }),
      ),
    );
  };
  return figure({
    kind: 'noise',
    width,
    height,
    title: `${capital(view.metric)} against privacy noise`,
    note:
      `Gaussian noise on the counts: a smaller epsilon means more noise. One panel for each bag size, rule ${rule}.` +
      levelNote(view, rows, bags, levels),
    describe: `A panel for each bag size, a line for each method over noise levels ${levels.map((l) => l.noise).join(', ')}.`,
    empty: values.some((v) => v !== null) ? null : 'No number to draw.',
    draw: bags.map(panel),
    columns: [
      'method',
      ...bags.flatMap((bag) =>
        levels.map((l) => `${bagName(dataset, bag)}, ${l.epsilon === Infinity ? 'none' : `ε ${short(l.epsilon)}`}`),
      ),
    ],
    rows: rows.map((r) => [
      r.method,
      ...bags.flatMap((bag) =>
        levels.map((l) => {
          const p = at(r, l.noise, bag);
          return num(p.mean) === null ? str(p.note || cellOf(r.row, l.noise, bag).status || 'missing') : told(p);
        }),
      ),
    ]),
  });
}

/** Which seeds are shown, where some were left out because they are not there at every noise level. */
function levelNote(view, rows, bags, levels) {
  const scores = rows.flatMap((r) => bags.flatMap((bag) => levels.map((l) => view.score(cellOf(r.row, l.noise, bag)))));
  const cut = scores.filter((p) => own(p, 'at_all_noises') && num(levelOf(p).mean) !== null);
  const seeds = [...new Set(cut.map((p) => str(levelOf(p).note)))].join(' or ');
  return seeds ? ` Means are over the seeds that a method has at every noise level: ${seeds}.` : '';
}
