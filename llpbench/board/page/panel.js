// What lies below the controls: heading, table, notes, charts and what the seeds can tell.

const MANY_SETTINGS = 8; // with more of them their table is what a reader of the tab looks for
let drawnWidth = 0; // of the charts; drawn again when the page is another

function panel(view) {
  const {dataset} = view;
  if (!dataset.name) return [h('p', {class: 'none'}, 'No results have been published yet.')];
  const count =
    view.rows.length === view.all.length
      ? plural(view.all.length, 'method')
      : `${view.rows.length} of ${plural(view.all.length, 'method')}`;
  const heading = h(
    'div',
    {class: 'heading'},
    h(
      'div',
      null,
      h('h2', null, dataLink(dataset, name(labelOf(dataset)), 'name')),
      dataset.title && dataset.title !== dataset.name ? h('p', {class: 'about'}, name(dataset.title)) : null,
      h(
        'p',
        {class: 'note'},
        [
          `${capital(view.metric)}${view.unit} on ${view.measuredOn}${view.lowIsBest ? ' (low is best)' : ''}`,
          `mean (sd) over seeds${usualSeeds(view)}`,
          `rule ${view.rule}`,
          `noise ${view.noise}`,
          count,
        ].join(' · '),
        ' · ',
        dataLink(dataset, 'source, licence, bags', 'more'),
      ),
    ),
    boundBox(view),
    bagBoundBox(view),
  );
  const legend = h(
    'p',
    {class: 'legend'},
    h('b', null, 'best'),
    h('u', null, 'second'),
    view.rows.some((r) => view.bags.some((bag) => view.score(cellOf(r.row, view.noise, bag)).note))
      ? h('span', null, 'means over the seeds that methods share; means over other seeds are shown below')
      : null,
    view.judged ? h('span', null, '≈ not separated from the best (for the best: from the second)') : null,
    view.rows.some(
      (r) => !r.control && view.bags.some((bag, i) => r.drawn[i] !== null && belowControl(view, bag, r.drawn[i])),
    )
      ? h('span', null, '▽ below a control')
      : null,
    view.rows.some((r) => view.bags.some((bag) => cellOf(r.row, view.noise, bag).status === 'partial'))
      ? h('span', null, '◌ some seeds are missing')
      : null,
    view.other
      ? h(
          'span',
          null,
          h('span', {class: 'moved up'}, '▲'),
          h('span', {class: 'moved down'}, '▼'),
          ` places against rule ${view.other}`,
        )
      : null,
    view.allUnreleased ? h('span', null, 'all made by unreleased code') : null,
    h('span', {class: 'keys'}, 'Open a cell for its parameters, seeds and command (arrow keys and Enter)'),
  );
  const unjudged = unjudgedNote(view);
  const many = familyOf(dataset).length > MANY_SETTINGS;
  const inner = mainWidth();
  const two = inner >= 900;
  const gap = 20;
  const pad = 34;
  const wide = Math.floor(two ? (inner - gap) * 0.58 : inner) - pad;
  const slim = two ? inner - gap - wide - pad - pad : inner - pad;
  drawnWidth = inner;
  const charts = [
    methodKey(view),
    view.bags.join() === '0' // bags that size themselves: nothing to draw against a size
      ? unjudged
        ? null
        : claimList(view)
      : unjudged
        ? bagChart(view, styles, inner - pad)
        : h('div', {class: 'pair uneven'}, bagChart(view, styles, wide), claimList(view)),
    bagPicker(view),
    h('div', {class: 'pair uneven'}, costChart(view, styles, wide), ruleChart(view, styles, slim)),
    phaseChart(view, styles, inner - pad, actions),
    curveChart(view, styles, inner - pad),
    list(dataset.noises).length > 1 ? noiseChart(view, styles, inner - pad) : null,
    many ? null : familyTable(view),
    protocolBlock(view),
  ];
  const above = [heading, renderTable(view, actions), legend, unjudged, missingNotes(view)];
  return [...above, many ? familyTable(view) : null, ...charts].filter(Boolean);
}

/** Opens the panel of a dataset. */
const dataLink = (dataset, text, key) =>
  h(
    'button',
    {
      type: 'button',
      class: `link ${key}`,
      'aria-haspopup': 'dialog',
      title: 'Source, licence, rows and bags of this dataset',
      'data-key': `data-${key}-${dataset.name}`,
      click: () => change({data: str(dataset.name), cell: null, method: ''}),
    },
    text,
  );

/** The seeds that most cells shown here have, as words. */
function usualSeeds(view) {
  const counts = new Map();
  for (const r of view.rows) {
    for (const bag of view.bags) {
      const seeds = seedsText(list(cellOf(r.row, view.noise, bag).seeds));
      if (seeds !== 'none') counts.set(seeds, (counts.get(seeds) || 0) + 1);
    }
  }
  const [most] = [...counts].sort(by(([, n]) => -n));
  return most ? ` ${most[0]}` : '';
}

function boundBox(view) {
  if (num(view.bound.mean) === null) return null;
  const row = view.bounds.find((r) => str(r.method) === str(view.bound.method)) || view.bounds[0];
  const cells = row ? Object.values(dict(row.cells)).flatMap((c) => Object.keys(dict(c))) : [];
  const label = [
    h('span', {class: 'what'}, 'Bound: trained on true labels'),
    h(
      'span',
      {class: 'value'},
      name(view.bound.method || (row && row.method) || 'supervised'),
      ' ',
      h('b', null, view.number(view.bound.mean)),
      num(view.bound.sd) === null ? '' : ` (${view.number(view.bound.sd)})`,
    ),
  ];
  return cells.length
    ? h(
        'button',
        {
          type: 'button',
          class: 'boundbox',
          'aria-haspopup': 'dialog',
          title: str(view.bound.note) || null,
          'data-key': 'bound',
          click: () => open(str(row.method), cells[0]),
        },
        label,
      )
    : h('div', {class: 'boundbox'}, label);
}

/** The bounds of bag sizes that have test rows of their own. */
function bagBoundBox(view) {
  const found = view.bags.map((bag, i) => [bag, dict(view.bagBounds[i])]).filter(([, b]) => num(b.mean) !== null);
  if (!found.length) return null;
  const values = found.map(([bag, b]) => [`${bagName(view.dataset, bag)}: `, h('b', null, view.number(b.mean)), ' ']);
  return h(
    'div',
    {class: 'boundbox'},
    h('span', {class: 'what'}, 'Bound of each bag size: trained on true labels'),
    h('span', {class: 'value'}, values),
  );
}

/** The key of all charts: hover or focus to bring a method forward, press to keep it there. */
function methodKey(view) {
  return h(
    'ul',
    {class: 'methods', 'aria-label': 'Methods: press to keep one in front'},
    view.rows.map((r) =>
      h(
        'li',
        null,
        h(
          'button',
          {
            type: 'button',
            class: 'chip',
            'aria-pressed': String(pinned.has(r.method)),
            'data-m': styles.get(r.method).id,
            'data-key': `chip-${r.method}`,
            click: (e) => {
              if (!pinned.delete(r.method)) pinned.add(r.method);
              e.currentTarget.setAttribute('aria-pressed', String(pinned.has(r.method)));
              lift();
            },
          },
          glyph(styles.get(r.method)),
          name(r.method),
        ),
      ),
    ),
  );
}

function bagPicker(view) {
  if (view.bags.length < 2) return null;
  return h(
    'div',
    {class: 'picker'},
    h('h3', null, 'At one bag size'),
    h(
      'div',
      {class: 'seg', role: 'group', 'aria-label': 'Bag size of the charts below'},
      view.bags.map((bag) =>
        h(
          'button',
          {
            type: 'button',
            'aria-pressed': String(bag === state.bag),
            'data-key': `bag-${bag}`,
            click: () => change({bag}),
          },
          bagShort(bag),
        ),
      ),
    ),
  );
}

/** Says so where the board compares methods by another metric than the one that is shown; else null. */
function unjudgedNote(view) {
  const judged = [...new Set(list(view.dataset.claims).map((c) => str(metricOf(board, str(c.metric)).title)))];
  if (!judged.length || view.judged) return null;
  const text = `Intervals are available for ${judged.join(', ')} only. For ${view.metric} there are means, standard deviations and ranks, but no tests.`;
  return h('p', {class: 'note unjudged'}, text);
}

function claimList(view) {
  const claims = list(view.dataset.claims).filter(
    (c) => str(c.metric) === state.metric && str(c.rule) === view.rule && str(c.noise || 'none') === view.noise,
  );
  const bases = new Set(claims.map((c) => str(c.basis)));
  const item = (c) =>
    h(
      'li',
      {class: c.separated === true ? 'yes' : 'no'},
      h(
        'span',
        {class: 'verdict'},
        h('span', {class: 'bagname'}, bagName(view.dataset, c.bag)),
        c.separated === true ? 'separated' : c.separated === false ? 'not separated' : 'not judged',
      ),
      h('p', null, str(c.text) || `${str(c.best)} against ${str(c.second)}: ${fixed(c.difference)}`),
      interval(c),
      bases.size > 1 && c.basis ? h('p', {class: 'note'}, str(c.basis)) : null,
    );
  return h(
    'section',
    {class: 'card claims'},
    h('h3', null, 'Statistical comparison'),
    h(
      'p',
      {class: 'note'},
      `Is the best of a column separated from the second? The dot is the difference, the line its 95 % interval${bases.size === 1 && [...bases][0] ? ` over ${[...bases][0]}` : ''}, widened because splits of two seeds share rows. The verdict is corrected for the number of rivals (Holm).`,
    ),
    claims.length
      ? h('ul', {class: 'claim-list'}, claims.sort(by((c) => Number(c.bag))).map(item))
      : h('p', {class: 'none'}, 'No comparison for this rule and noise.'),
  );

  function interval(c) {
    const [low, high, d] = [plot(c.low), plot(c.high), plot(c.difference)];
    if (low === null || high === null || d === null) return null;
    const ends = claims.flatMap((o) => [plot(o.low) || 0, plot(o.high) || 0]);
    const x = linear([Math.min(0, ...ends), Math.max(0.1, ...ends)], [4, 236]);
    return s(
      'svg',
      {
        class: 'interval',
        viewBox: '0 0 240 14',
        role: 'img',
        'aria-label': `difference ${fixed(d)}, interval ${fixed(low)} to ${fixed(high)}`,
      },
      s('line', {class: 'zero', x1: x(0), x2: x(0), y1: 0, y2: 14}),
      s('line', {class: 'range', x1: x(low), x2: x(high), y1: 7, y2: 7}),
      s('circle', {cx: x(d), cy: 7, r: 3.6}),
    );
  }
}

function missingNotes(view) {
  const notes = new Map();
  for (const r of view.rows) {
    for (const bag of view.bags) {
      const cell = cellOf(r.row, view.noise, bag);
      if (str(cell.status || 'missing') === 'ok' || !cell.reason) continue;
      const key = `${r.method}: ${str(cell.status)}: ${str(cell.reason)}`;
      notes.set(key, [...(notes.get(key) || []), bag]);
    }
  }
  if (!notes.size) return null;
  return h(
    'details',
    {class: 'data missing', 'data-keep': 'missing'},
    h('summary', {'data-key': 'missing'}, `${plural(notes.size, 'note')} on cells without all numbers`),
    h(
      'ul',
      null,
      [...notes].map(([text, bags]) =>
        h('li', null, name(text), ` (${bags.map((bag) => bagName(view.dataset, bag)).join(', ')})`),
      ),
    ),
  );
}
