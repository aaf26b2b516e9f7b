// The other charts: how the rule changes the ranking, the price in seconds, where the seconds go, noise.

// -- the two rules side by side ---------------------------------------------------------------------------------------

function ruleChart(view, styles, width) {
  const {state, noise} = view;
  const bag = state.bag;
  const [rule, other] = list(view.board.rules).filter((r) => r === view.rule || r === view.other);
  const rows = view.rows.filter((r) => !r.control).map((r) => r.row);
  const sides = [rule, other].map((r) => placesBy(rows, (row) => meanOf(row, noise, bag, r), view.lowIsBest));
  const both = rows.filter((row) => sides.every((places) => places.has(str(row.method))));
  const order = sides.map((places) => [...both].sort(by((row) => places.get(str(row.method)))));
  const step = Math.max(26, Math.min(36, 330 / Math.max(1, both.length)));
  const height = 40 + step * both.length;
  const wide = Math.min(width, 560);
  const narrow = wide < 400;
  const [left, right] = narrow ? [wide * 0.44, wide * 0.56] : [wide * 0.42, wide * 0.58];
  const room = Math.floor((left - (narrow ? 32 : 82)) / 6.6);
  const y = (side, row) => 42 + step * order[side].indexOf(row);
  const line = (row) => {
    const method = str(row.method);
    const style = styles.get(method);
    const [a, b] = sides.map((places) => places.get(method));
    const [u, v] = [meanOf(row, noise, bag, rule), meanOf(row, noise, bag, other)];
    const tip = `${method} · ${rule} ${fixed(u)} (place ${a}) · ${other} ${fixed(v)} (place ${b})`;
    const mid = (left + right) / 2;
    return s('g', {class: `slope${a === b ? ' same' : ''}`, ...spot(style, tip, method, bag)},
      s('path', {class: 'hit', d: `M0,${y(0, row)}H${left}L${right},${y(1, row)}H${wide}`}),
      s('path', {class: `line ${style.hue}`, d: `M${left},${y(0, row)}C${mid},${y(0, row)} ${mid},${y(1, row)} ${right},${y(1, row)}`}),
      marker(style, left, y(0, row), 4.2), marker(style, right, y(1, row), 4.2),
      s('text', {x: left - 10, y: y(0, row) + 4, 'text-anchor': 'end'}, clip(method, Math.max(6, room)), narrow ? null : s('tspan', {class: 'value', dx: 6}, fixed(u))),
      s('text', {class: 'place', x: 4, y: y(0, row) + 4}, a),
      s('text', {x: right + 10, y: y(1, row) + 4}, narrow ? null : s('tspan', {class: 'value'}, fixed(v)), s('tspan', {dx: narrow ? 0 : 6}, clip(method, Math.max(6, room)))),
      s('text', {class: 'place', x: wide - 4, y: y(1, row) + 4, 'text-anchor': 'end'}, b));
  };
  const moved = both.filter((row) => sides[0].get(str(row.method)) !== sides[1].get(str(row.method))).length;
  return figure({
    kind: 'rules', width: wide, height,
    title: `The rule makes the ranking, bag size ${bag}`,
    note: `The same fits, selected on held-back bags (what a user has) or on labels of single rows (what nobody who needs LLP has). ${moved} of ${plural(both.length, 'method')} change place${both.length < rows.length ? `; ${rows.length - both.length} without a number` : ''}.`,
    describe: `Places under rule ${rule} on the left, under rule ${other} on the right, a line for each method.`,
    empty: !other ? 'The board has one selection rule.' : both.length ? null : 'No method has a number under both rules here.',
    draw: [
      s('text', {class: `column${rule === view.rule ? '' : ' off'}`, x: left, y: 18, 'text-anchor': 'end'}, rule),
      s('text', {class: `column${other === view.rule ? '' : ' off'}`, x: right, y: 18}, other),
      both.map(line),
    ],
    columns: ['method', `${rule}: place`, `${rule}: ${view.metric}`, `${other}: place`, `${other}: ${view.metric}`],
    rows: order[0].map((row) => [str(row.method), ...[rule, other].flatMap((r, i) => [
      sides[i].get(str(row.method)), fixed(meanOf(row, noise, bag, r))])]),
  });
}

// -- the price --------------------------------------------------------------------------------------------------------

function costChart(view, styles, width) {
  const {state, noise, rule} = view;
  const bag = state.bag;
  const points = view.rows.map((r) => {
    const cell = cellOf(r.row, noise, bag);
    return {...r, cell, style: styles.get(r.method), time: fitOf(cell), score: scoreOf(cell, rule)};
  }).filter((p) => p.time !== null && p.time > 0 && plot(p.time) !== null && plot(p.score.mean) !== null);
  const front = paretoFront(view, points);
  points.forEach((p) => { p.front = front.has(p.method); });
  const height = Math.round(Math.max(300, Math.min(400, width * 0.62)));
  const box = {left: 44, right: width - 18, top: 14, bottom: height - 42};
  const times = extent(points.map((p) => p.time)) || [1, 10];
  const reach = times[1] / times[0] < 4 ? [times[0] / 3, times[1] * 3] : [times[0] / 1.6, times[1] * (width < 480 ? 3 : 2.2)];
  const bound = plot(view.bound.mean);
  const domain = methodDomain([...points.filter((p) => !p.control).map((p) => p.score.mean), bound], points.filter((p) => p.control).map((p) => p.score.mean), view.percent);
  const below = points.filter((p) => p.score.mean < domain[0]);
  const drawn = points.filter((p) => !below.includes(p));
  const x = log(reach, [box.left, box.right]);
  const y = linear(domain, [box.bottom, box.top]);
  const edge = points.filter((p) => p.front).sort(by((p) => p.time));
  const steps = edge.flatMap((p, i) => (i ? [[x(p.time), y(edge[i - 1].score.mean)], [x(p.time), y(p.score.mean)]] : [[x(p.time), y(p.score.mean)]]));
  if (edge.length) steps.push([box.right, y(edge[edge.length - 1].score.mean)]);
  const taken = drawn.map((p) => ({x0: x(p.time) - 6, x1: x(p.time) + 6, y0: y(p.score.mean) - 6, y1: y(p.score.mean) + 6}));
  if (bound !== null) taken.push({x0: box.right - 150, x1: box.right, y0: y(bound) - 2, y1: y(bound) + 16});
  const mark = (p) => s('g', {'data-m': p.style.id, class: p.front ? 'front' : ''},
    marker(p.style, x(p.time), y(p.score.mean), 5, spot(p.style, `${p.method} · ${meanSd(p.score)} · ${seconds(p.time)}`, p.method, bag)),
    placeLabel(clip(p.method, 18), x(p.time), y(p.score.mean), box, taken));
  return figure({
    kind: 'cost', width, height,
    title: `${view.metric} against seconds, bag size ${bag}`,
    note: `Seconds of one fit on a logarithmic axis; up and to the left is better.${edge.length ? ' The line is the Pareto front: nobody is both faster and better.' : ''}`
      + (below.length ? ` Below the axis: ${below.map((p) => `${p.method} ${fixed(p.score.mean)} in ${seconds(p.time)}`).join(', ')}.` : ''),
    describe: `${plural(points.length, 'method')}; on the Pareto front: ${edge.map((p) => p.method).join(', ') || 'not given'}.`,
    empty: points.length ? null : 'No method has both a number and a time here.',
    draw: [
      yAxis(y, ticks(domain, 6), box.left, box.right), xAxis(x, logTicks(reach), box.bottom, short),
      axisTitle((box.left + box.right) / 2, height - 6, 'seconds'),
      bound === null ? null : boundLine(view, box, y(bound)),
      s('path', {class: 'frontier', d: pathOf(steps)}),
      [...drawn].sort(by((p) => -p.front)).map(mark),
    ],
    columns: ['method', view.metric, 'seconds', 'on the front'],
    rows: [...points].sort(by((p) => p.time)).map((p) => [p.method, meanSd(p.score), amount(p.time), p.front ? 'yes' : 'no']),
  });
}

/** Methods that nobody beats in both; as the board says where it says it (without noise), else by the same rule. */
function paretoFront(view, points) {
  const given = dict(dict(view.dataset.pareto)[view.rule])[view.state.bag];
  if (view.noise === 'none' && Array.isArray(given)) return new Set(given.map(str));
  const better = (a, b) => (view.lowIsBest ? a <= b : a >= b);
  const rivals = points.filter((p) => !p.control);
  const beaten = (p) => rivals.some((q) => q !== p && q.time <= p.time && better(q.score.mean, p.score.mean)
    && (q.time < p.time || q.score.mean !== p.score.mean));
  return new Set(rivals.filter((p) => !beaten(p)).map((p) => p.method));
}

/** A label beside a point, where it covers nothing; left out of the drawing when there is no such place. */
function placeLabel(text, x, y, box, taken) {
  const w = text.length * 6.3 + 4;
  const options = [[9, 4, 'start'], [-9, 4, 'end'], [0, -10, 'middle'], [0, 17, 'middle'], [7, -8, 'start'], [7, 15, 'start'], [-7, -8, 'end'], [-7, 15, 'end']];
  for (const [dx, dy, anchor] of options) {
    const x0 = x + dx - (anchor === 'end' ? w : anchor === 'middle' ? w / 2 : 0);
    const area = {x0, x1: x0 + w, y0: y + dy - 10, y1: y + dy + 2};
    const free = area.x0 > box.left && area.x1 < box.right + 12 && area.y0 > box.top - 8 && area.y1 < box.bottom
      && !taken.some((t) => t.x0 < area.x1 && t.x1 > area.x0 && t.y0 < area.y1 && t.y1 > area.y0);
    if (!free) continue;
    taken.push(area);
    return s('text', {class: 'point-label', x: x + dx, y: y + dy, 'text-anchor': anchor}, text);
  }
  return null;
}

// -- where the seconds go ---------------------------------------------------------------------------------------------

function phasesOf(cell) {
  const fit = fitOf(cell);
  const parts = Object.entries(dict(dict(cell.seconds).phases)).map(([phase, v]) => [phase, plot(v)]).filter(([, v]) => v !== null && v > 0);
  const rest = plot(fit) === null ? 0 : fit - parts.reduce((sum, [, v]) => sum + v, 0);
  return rest > 0.01 * (fit || 0) ? [...parts, ['other', rest]] : parts;
}

function phaseChart(view, styles, width, actions) {
  const {noise, state} = view;
  const bag = state.bag;
  const items = view.rows.map((r) => {
    const cell = cellOf(r.row, noise, bag);
    const parts = phasesOf(cell);
    return {...r, parts, style: styles.get(r.method), total: parts.reduce((sum, [, v]) => sum + v, 0)};
  }).filter((r) => r.total > 0 && r.total < 1e9).sort(by((r) => r.total));
  const phases = [...new Set(items.flatMap((r) => r.parts.map(([phase]) => phase)))].sort(by((phase) => phase === 'other'));
  const tint = (phase) => `p${phase === 'other' ? 'x' : phases.indexOf(phase) % 8}`;
  const step = 26;
  const height = 12 + step * items.length;
  const left = Math.min(130, width * 0.3);
  const right = width - 66;
  const most = Math.max(...items.map((r) => r.total), 0);
  const bar = (r, i) => {
    const top = 8 + step * i;
    let x = left;
    return s('g', {'data-m': r.style.id},
      s('text', {x: left - 10, y: top + 14, 'text-anchor': 'end'}, clip(r.method, Math.max(8, Math.floor((left - 14) / 6.4)))),
      r.parts.map(([phase, v]) => {
        const w = (v / (state.share ? r.total : most)) * (right - left);
        const piece = s('rect', {class: `phase ${tint(phase)}`, x, y: top, width: Math.max(w - 1, 0.6), height: 18, rx: 1.5,
          ...spot(r.style, `${r.method} · ${phase} ${seconds(v)} (${fixed((100 * v) / r.total, 0)} %)`, r.method, bag)});
        x += w;
        return piece;
      }),
      s('text', {class: 'value', x: state.share ? width - 4 : x + 7, y: top + 14, 'text-anchor': state.share ? 'end' : 'start'}, seconds(r.total)));
  };
  const scale = h('div', {class: 'seg mini', role: 'group', 'aria-label': 'Scale of the bars'}, [[false, 'seconds'], [true, 'share']].map(([share, label]) => h('button', {
    type: 'button', 'aria-pressed': String(state.share === share), 'data-key': `share-${share}`, click: () => actions.change({share}),
  }, label)));
  return figure({
    kind: 'phases', width, height,
    title: `Where the seconds go, bag size ${bag}`,
    note: 'Seconds of one fit by the phases the method names; loading data and scoring are not in it.',
    describe: `Bars for ${plural(items.length, 'method')}, cut into phases ${phases.join(', ')}.`,
    tools: h('div', {class: 'tools'}, scale, h('ul', {class: 'key'}, phases.map((phase) => h('li', null,
      h('span', {class: `swatch ${tint(phase)}`, 'aria-hidden': 'true'}), name(clip(phase, 24)))))),
    empty: items.length ? null : 'No times here.',
    draw: items.map(bar),
    columns: ['method', 'seconds', ...phases],
    rows: items.map((r) => [r.method, amount(r.total), ...phases.map((phase) => { const p = r.parts.find(([n]) => n === phase); return p ? amount(p[1]) : '–'; })]),
  });
}

// -- noise ------------------------------------------------------------------------------------------------------------

/** Positions of noise levels: falling epsilon on a logarithmic axis, no noise set apart on the left. */
function noisePositions(dataset, noises) {
  const levels = noises.map((noise) => ({noise, epsilon: epsilonOf(dataset, noise)})).filter((l) => l.epsilon !== null && l.epsilon > 0);
  levels.sort(by((l) => (l.epsilon === Infinity ? -1e9 : -Math.log(l.epsilon))));
  const finite = levels.filter((l) => l.epsilon !== Infinity).map((l) => Math.log(l.epsilon));
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const free = levels.length > finite.length ? 0.42 : 0;
  return levels.map((l) => ({...l, at: l.epsilon === Infinity ? 0
    : high === low ? (free ? 1 : 0.5) : free + (1 - free) * ((high - Math.log(l.epsilon)) / (high - low))}));
}

function noiseChart(view, styles, width) {
  const {bags, rule, dataset} = view;
  const levels = noisePositions(dataset, list(dataset.noises));
  const columns = Math.max(1, Math.min(bags.length, Math.floor(width / 148)));
  const w = (width - 8) / columns;
  const tall = 220;
  const height = Math.ceil(bags.length / columns) * tall + 4;
  const rows = view.rows.map((r) => ({...r, style: styles.get(r.method)}));
  const meansOf = (some) => some.flatMap((r) => bags.flatMap((bag) => levels.map((l) => plot(meanOf(r.row, l.noise, bag, rule)))));
  const values = meansOf(rows);
  const domain = methodDomain(meansOf(rows.filter((r) => !r.control)), meansOf(rows.filter((r) => r.control)), view.percent);
  const panel = (bag, i) => {
    const [left, top] = [(i % columns) * w + 36, Math.floor(i / columns) * tall + 24];
    const [right, bottom] = [left + w - 48, top + tall - 52];
    const x = linear([0, 1], [left + 8, right - 8]);
    const y = linear(domain, [bottom, top]);
    return s('g', null,
      s('text', {class: 'column', x: left, y: top - 9}, `bag ${bag}`),
      yAxis(y, ticks(domain, 4), left, right),
      s('g', {class: 'axis'}, levels.map((l) => [
        s('line', {class: 'tick', x1: x(l.at), x2: x(l.at), y1: bottom, y2: bottom + 4}),
        s('text', {x: x(l.at), y: bottom + 17, 'text-anchor': 'middle'}, l.epsilon === Infinity ? 'none' : `ε ${short(l.epsilon)}`)])),
      clipped({left, right, top, bottom}, rows.map((r) => {
        const points = levels.map((l) => ({l, p: scoreOf(cellOf(r.row, l.noise, bag), rule)})).filter(({p}) => plot(p.mean) !== null);
        return s('g', {class: 'series', 'data-m': r.style.id},
          s('path', {class: `line ${r.style.hue}${r.control ? ' dashed' : ''}`, d: pathOf(points.map(({l, p}) => [x(l.at), y(p.mean)]))}),
          points.map(({l, p}) => marker(r.style, x(l.at), y(p.mean), 3.2, spot(r.style, `${r.method} · bag ${bag} · noise ${l.noise} · ${meanSd(p)}`))));
      })));
  };
  return figure({
    kind: 'noise', width, height,
    title: `${view.metric} against privacy noise`,
    note: `Gaussian noise on the counts: less epsilon is more noise. One panel for each bag size, rule ${rule}.`,
    describe: `A panel for each bag size, a line for each method over noise levels ${levels.map((l) => l.noise).join(', ')}.`,
    empty: values.some((v) => v !== null) ? null : 'No number to draw.',
    draw: bags.map(panel),
    columns: ['method', ...bags.flatMap((bag) => levels.map((l) => `bag ${bag}, ${l.epsilon === Infinity ? 'none' : `ε ${short(l.epsilon)}`}`))],
    rows: rows.map((r) => [r.method, ...bags.flatMap((bag) => levels.map((l) => {
      const p = scoreOf(cellOf(r.row, l.noise, bag), rule);
      return num(p.mean) === null ? str(cellOf(r.row, l.noise, bag).status || 'missing') : meanSd(p);
    }))]),
  });
}
