// Two selection rules side by side: how the rule changes the ranking.

/** What a rule does, as it says itself. */
function ruleSentence(board, rule) {
  const {summary} =
    list(board.rules)
      .map(dict)
      .find((r) => str(r.name) === rule) || dict();
  return summary ? `${capital(rule)}: ${str(summary)}.` : '';
}

function ruleChart(view, styles, width) {
  const {state, noise} = view;
  const bag = state.bag;
  const [rule, other] = view.rules.filter((r) => r === view.rule || r === view.other);
  const rows = view.rows.filter((r) => !r.control).map((r) => r.row);
  const sides = [rule, other].map((r) => placesBy(rows, (row) => view.fair(row, noise, bag, r), view.lowIsBest));
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
    const [u, v] = [view.fair(row, noise, bag, rule), view.fair(row, noise, bag, other)];
    const tip = `${method} · ${rule} ${view.number(u)} (place ${a}) · ${other} ${view.number(v)} (place ${b})`;
    const mid = (left + right) / 2;
    return s(
      'g',
      {class: `slope${a === b ? ' same' : ''}`, ...spot(style, tip, method, bag)},
      s('path', {class: 'hit', d: `M0,${y(0, row)}H${left}L${right},${y(1, row)}H${wide}`}),
      s('path', {
        class: `line ${style.hue}`,
        d: `M${left},${y(0, row)}C${mid},${y(0, row)} ${mid},${y(1, row)} ${right},${y(1, row)}`,
      }),
      marker(style, left, y(0, row), 4.2),
      marker(style, right, y(1, row), 4.2),
      s(
        'text',
        {x: left - 10, y: y(0, row) + 4, 'text-anchor': 'end'},
        clip(method, Math.max(6, room)),
        narrow ? null : s('tspan', {class: 'value', dx: 6}, view.number(u)),
      ),
      s('text', {class: 'place', x: 4, y: y(0, row) + 4}, a),
      s(
        'text',
        {x: right + 10, y: y(1, row) + 4},
        narrow ? null : s('tspan', {class: 'value'}, view.number(v)),
        s('tspan', {dx: narrow ? 0 : 6}, clip(method, Math.max(6, room))),
      ),
      s('text', {class: 'place', x: wide - 4, y: y(1, row) + 4, 'text-anchor': 'end'}, b),
    );
  };
  const moved = both.filter((row) => sides[0].get(str(row.method)) !== sides[1].get(str(row.method))).length;
  return figure({
    kind: 'rules',
    width: wide,
    height,
    title: `Ranking under two selection rules, ${bagSize(view.dataset, bag)}`,
    note: `The same fits, selected by two rules. ${[rule, other].map((r) => ruleSentence(view.board, r)).join(' ')} ${moved} of ${plural(both.length, 'method')} change rank${both.length < rows.length ? `; ${rows.length - both.length} not compared` : ''}.`,
    describe: `Places under rule ${rule} on the left, under rule ${other} on the right, a line for each method.`,
    empty: !other
      ? 'The board has one selection rule.'
      : both.length
        ? null
        : 'No two methods share seeds under both rules here.',
    draw: [
      s('text', {class: `column${rule === view.rule ? '' : ' off'}`, x: left, y: 18, 'text-anchor': 'end'}, rule),
      s('text', {class: `column${other === view.rule ? '' : ' off'}`, x: right, y: 18}, other),
      both.map(line),
    ],
    columns: ['method', `${rule}: place`, `${rule}: ${view.metric}`, `${other}: place`, `${other}: ${view.metric}`],
    rows: order[0].map((row) => [
      str(row.method),
      ...[rule, other].flatMap((r, i) => [sides[i].get(str(row.method)), view.number(view.fair(row, noise, bag, r))]),
    ]),
  });
}
