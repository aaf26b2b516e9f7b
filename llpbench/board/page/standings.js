// The table of the first tab: a line for each ranked method, its variants folded under it.

function overallTable(view) {
  const {found, rows, state} = view;
  const sortable = {state, lowIsBest: true};
  const head = (key, label, title, numeric = true) =>
    sortHeader(sortable, key, label, {class: numeric ? 'num plain' : key, title}, change);
  const line = (r) => {
    const variants = list(found.variants)
      .map(dict)
      .filter((v) => str(v.of) === str(r.method));
    return [
      overallRow(view, r, variants.length),
      ...(view.state.open.includes(str(r.method)) ? variants.map(variantRow) : []),
    ];
  };
  return h(
    'div',
    {class: 'scroll', role: 'region', 'aria-label': 'Standings', tabindex: '0', 'data-key': 'scroll'},
    h(
      'table',
      {class: 'board overall'},
      h('caption', {class: 'sr'}, `Standings over all datasets by ${view.metric}, rule ${state.rule}`),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          head('rank', 'Rank', 'Place by mean rank', false),
          head('method', 'Method', null, false),
          h(
            'th',
            {scope: 'col'},
            h(
              'span',
              {title: 'Mean rank (1 is best) with its 95 % interval over resampled sources and seeds'},
              'Mean rank',
            ),
          ),
          head('wins', 'Won, %', 'Cells won against the other ranked methods, mean share; a tie is half'),
          head('scaled', 'Score 0–1', 'Where the best control is 0 and the bound (trained on true labels) is 1'),
          head('time', 'Fit, s', 'Median seconds of one fit, on one machine'),
          h('th', {scope: 'col', class: 'what'}, 'What it is'),
        ),
      ),
      h(
        'tbody',
        null,
        rows.length
          ? rows.map(line)
          : h('tr', null, h('td', {colspan: 7, class: 'none'}, 'No method matches the filter.')),
      ),
    ),
  );
}

function overallRow(view, r, variants) {
  const method = str(r.method);
  const style = styleOf(method);
  return h(
    'tr',
    {'data-m': style.id},
    h('td', {class: 'rank'}, h('span', {class: 'place'}, h('b', null, view.places.get(method)))),
    h(
      'th',
      {scope: 'row', class: 'method'},
      h(
        'span',
        {class: 'who'},
        glyph(style),
        methodLink(method),
        variants ? foldButton(method, variants) : null,
        whoseMark(method),
      ),
    ),
    h(
      'td',
      {class: 'ranks'},
      h('b', null, fixed(r.rank)),
      rankBar(r, view.all.length, style),
      num(r.low) === null ? null : h('span', {class: 'sd'}, ` ${fixed(r.low, 1)}–${fixed(r.high, 1)}`),
      r.separated === false
        ? h('span', {class: 'near', title: `not separated from the first (p ${fixed(r.p, 3)})`}, 'not separated')
        : null,
    ),
    h('td', {class: 'num'}, num(r.wins) === null ? '–' : fixed(100 * r.wins, 0)),
    h('td', {class: 'num'}, num(r.scaled) === null ? '–' : fixed(r.scaled)),
    h(
      'td',
      {class: 'num time'},
      amount(r.seconds),
      num(r.failed)
        ? h(
            'span',
            {class: 'sd', title: 'cells that failed or were declined; they count as the worst number there'},
            ` ${r.failed} failed`,
          )
        : null,
    ),
    h('td', {class: 'what'}, str(aboutMethod(method).summary), originLine(aboutMethod(method))),
  );
}

/** The family, year and paper of a method, or that it was developed here. */
function originLine(about) {
  const parts = [
    about.family && name(about.family),
    yearOf(about),
    about.paper && outward(about.paper, 'paper'),
    isOurs(about) && h('span', {class: 'ours'}, 'developed here'),
  ].filter(Boolean);
  return parts.length
    ? h(
        'span',
        {class: 'origin'},
        parts.map((part, i) => [i ? ' · ' : '', part]),
      )
    : null;
}

/** A mean rank with its interval as a bar on the scale from 1 to the number of methods. */
function rankBar(r, most, style) {
  const [w, tall] = [112, 16];
  const x = linear([1, Math.max(2, most)], [5, w - 5]);
  const {rank, low, high} = r;
  if (num(rank) === null) return null;
  return s(
    'svg',
    {class: 'rankbar', width: w, height: tall, viewBox: `0 0 ${w} ${tall}`, 'aria-hidden': 'true'},
    s('line', {class: 'track', x1: 5, x2: w - 5, y1: tall / 2, y2: tall / 2}),
    num(low) === null
      ? null
      : s('line', {class: `line ${style.hue}`, x1: x(low), x2: x(high), y1: tall / 2, y2: tall / 2}),
    s('circle', {class: `mark ${style.hue}`, cx: x(rank), cy: tall / 2, r: 4}),
  );
}

/** On the page of one's own results: whether a method is one's own. */
function whoseMark(method) {
  const own = list(board.datasets).some((d) =>
    list(d.rows).some((r) => str(r.method) === method && r.whose === 'yours'),
  );
  return own ? h('span', {class: 'rowmark yours'}, 'yours') : null;
}

/** Shows or hides the variants of a method. */
function foldButton(method, variants) {
  const opened = state.open.includes(method);
  return h(
    'button',
    {
      type: 'button',
      class: 'fold',
      'aria-expanded': String(opened),
      'aria-label': `${plural(variants, 'variant')} of ${method}`,
      title: `${plural(variants, 'variant')} with other settings`,
      'data-key': `fold-${method}`,
      click: () => change({open: opened ? state.open.filter((m) => m !== method) : [...state.open, method]}),
    },
    `${opened ? '−' : '+'} ${plural(variants, 'variant')}`,
  );
}

const variantRow = (v) =>
  h(
    'tr',
    {class: 'variant', 'data-m': styleOf(str(v.method)).id},
    h('td', {class: 'rank'}, ''),
    h(
      'th',
      {scope: 'row', class: 'method'},
      h('span', {class: 'who'}, glyph(styleOf(str(v.method))), methodLink(str(v.method))),
    ),
    h(
      'td',
      {colspan: 2, class: 'note'},
      num(v.wins) === null
        ? 'no cell in common with its defaults'
        : `beats its defaults in ${fixed(100 * v.wins, 0)} % of ${plural(v.cells, 'cell')}`,
    ),
    h('td', {class: 'num'}, num(v.scaled) === null ? '–' : fixed(v.scaled)),
    h('td', {colspan: 2, class: 'what'}, ''),
  );

const styleOf = (method) => styles.get(method) || {hue: 'kn', shape: 0, id: -1};

/** A method's name that opens its own panel. */
const methodLink = (method) =>
  h(
    'button',
    {
      type: 'button',
      class: 'link',
      'aria-haspopup': 'dialog',
      'data-key': `about-${method}`,
      click: () => change({method, cell: null, data: ''}),
    },
    name(method),
  );
