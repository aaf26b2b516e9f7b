// The panels of a method and of a dataset: what they are, how they do everywhere, and when they fail.

/** A link that leaves the page; only for addresses of the web, whatever a file says. */
const outward = (address, text) =>
  /^https?:\/\//.test(str(address))
    ? h('a', {href: str(address), target: '_blank', rel: 'noopener noreferrer'}, text || str(address))
    : name(address);

const closeButton = () =>
  h('button', {type: 'button', class: 'ghost', 'aria-label': 'Close', 'data-key': 'close', click: close}, '✕');

const panelHead = (title, ...below) =>
  h(
    'header',
    null,
    h('div', null, h('h2', {id: 'detail-title', tabindex: '-1'}, title), ...below),
    h('div', {class: 'go'}, closeButton()),
  );

/** Pairs of which the empty ones are left out. */
const known = (entries) => entries.filter(([, value]) => value !== null && value !== undefined && value !== '');

function methodPanel(method) {
  const rows = list(board.datasets).flatMap((d) =>
    list(d.rows)
      .filter((row) => str(row.method) === method)
      .map((row) => ({dataset: d, row})),
  );
  if (!rows.length) return null;
  const {row} = rows[0];
  const about = dict(dict(board.methods)[str(row.name)]);
  return [
    panelHead(
      [glyph(styleOf(method)), name(method)],
      h('p', {class: 'summary'}, str(about.summary || row.summary)),
      row.oracle ? h('p', {class: 'note'}, 'Bound: trained on the true labels.') : null,
      row.control ? h('p', {class: 'note'}, 'Control: a baseline that learns next to nothing.') : null,
    ),
    linkPairs('Source', [
      ['family', about.family && name(about.family)],
      ['year', yearOf(about)],
      ['paper', about.paper && outward(about.paper)],
      ['reference', about.citation ? name(about.citation) : isOurs(about) ? 'developed here' : 'no publication'],
      ['authors’ code', about.code && outward(about.code)],
      ['package', row.origin && name(row.origin)],
      ['code', row.unreleased ? 'unreleased' : ''],
      ['reproduced', reproduced(rows)],
    ]),
    behindSection(method, rows),
    resultsSection(method, rows),
    failureSection(rows),
    belowSection(rows),
    paramSection(about),
  ];
}

/** How many cells of a method, over all its rows, were reproduced; '' if none. */
function reproduced(rows) {
  const marks = rows.map(({row}) => dict(row.verified));
  const latest = marks.map((mark) => str(mark.latest)).sort();
  const count = (row) =>
    new Set(
      Object.values(dict(row.cells)).flatMap((cells) =>
        Object.values(dict(cells)).flatMap((cell) => list(dict(cell).seed_ids).map(str)),
      ),
    ).size;
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const cells = sum(marks.map((mark) => num(mark.cells) || 0));
  const of = sum(rows.map(({row}, i) => num(marks[i].of) ?? count(row)));
  return marks.some((mark) => num(mark.of) !== null) ? `${cells} of ${of} cells, latest ${latest.pop()}` : '';
}

const linkPairs = (title, entries) =>
  known(entries).length
    ? section(
        title,
        h(
          'dl',
          null,
          known(entries).map(([key, value]) => h('div', null, h('dt', null, key), h('dd', null, value))),
        ),
      )
    : null;

function paramSection(about) {
  const params = list(about.params).map(dict);
  return params.length
    ? section(
        'Parameters and their defaults',
        h(
          'dl',
          {class: 'params'},
          params.map((p) =>
            h(
              'div',
              null,
              h('dt', null, name(p.name), p.doc ? h('span', {class: 'note'}, str(p.doc)) : null),
              h('dd', {class: 'mono'}, p.default === null || p.default === undefined ? 'none' : str(p.default)),
            ),
          ),
        ),
      )
    : null;
}

/** Every number of a method by the metric and rule that are shown; a press opens the cell. */
function resultsSection(method, rows) {
  const {metric, rule} = state;
  const title = str(metricOf(board, metric).title || metric);
  const digits = num(metricOf(board, metric).digits) ?? 2;
  const line = ({dataset, row}) =>
    Object.entries(dict(row.cells)).map(([noise, cells]) => {
      const bags = Object.keys(dict(cells)).filter((bag) => dict(cells[bag]).status !== 'missing');
      return bags.length
        ? h(
            'div',
            {class: 'runs'},
            h('p', null, name(labelOf(dataset)), noise === 'none' ? '' : h('span', {class: 'note'}, ` noise ${noise}`)),
            h(
              'ul',
              {class: 'scores'},
              bags.map((bag) => {
                const found = scoreOf(cells[bag], metric, rule);
                const value = num(found.mean) === null ? str(cells[bag].status) : fixed(drawnOf(found), digits);
                return h(
                  'li',
                  null,
                  h(
                    'button',
                    {
                      type: 'button',
                      class: 'link',
                      'data-key': `run-${dataset.name}-${noise}-${bag}`,
                      click: () => change({dataset: str(dataset.name), noise, method: '', cell: {method, bag}}),
                    },
                    h(
                      'span',
                      {class: 'muted'},
                      row.oracle && !own(dataset, 'bag_bounds') ? 'bound ' : `${bagName(dataset, bag)} `,
                    ),
                    h('span', {class: found.best ? 'best' : found.second ? 'second' : ''}, value),
                  ),
                );
              }),
            ),
          )
        : null;
    });
  return section(`Results: ${title}, rule ${rule}`, rows.flatMap(line));
}

/** Cells without a number, the same reason once. */
function failureSection(rows) {
  const reasons = new Map();
  for (const {dataset, row} of rows) {
    for (const [noise, cells] of Object.entries(dict(row.cells))) {
      for (const [bag, cell] of Object.entries(dict(cells))) {
        if (['ok', 'missing'].includes(str(cell.status)) || !cell.reason) continue;
        const where = placeWords(dataset, bag, noise);
        const key = `${statusWords(str(cell.status))}: ${str(cell.reason).replace(/seed \d+: /g, '')}`;
        reasons.set(key, [...(reasons.get(key) || []), where]);
      }
    }
  }
  return reasons.size
    ? section(
        'Cells that failed or were declined',
        h(
          'ul',
          {class: 'reasons'},
          [...reasons].map(([text, where]) =>
            h('li', null, name(text), h('p', {class: 'note'}, name(where.join(' · ')))),
          ),
        ),
      )
    : null;
}

const FURTHEST = 5;

/** The columns in which a method is furthest behind the best one, with its place there. */
function behindSection(method, rows) {
  const {metric, rule} = state;
  const low = lowIsBest(board, metric);
  const digits = num(metricOf(board, metric).digits) ?? 2;
  const found = [];
  for (const {dataset, row} of rows) {
    if (row.oracle || row.control) return null;
    const rivals = list(dataset.rows).filter((r) => !r.oracle && !r.control && str(r.method) === str(r.name));
    for (const [noise, cells] of Object.entries(dict(row.cells))) {
      for (const bag of Object.keys(dict(cells))) {
        const value = (r) => fairOf(scoreOf(cellOf(r, noise, bag), metric, rule));
        const ours = value(row);
        const others = rivals.filter((r) => str(r.method) !== method && value(r) !== null);
        if (ours === null || !others.length) continue;
        const [best] = others.sort(by((r) => (low ? value(r) : -value(r))));
        const gap = low ? ours - value(best) : value(best) - ours;
        const place = 1 + others.filter((r) => (low ? value(r) < ours : value(r) > ours)).length;
        if (gap > 0)
          found.push({
            gap,
            place,
            of: others.length + 1,
            best,
            where: placeWords(dataset, bag, noise),
            ours,
            top: value(best),
          });
      }
    }
  }
  const worst = found.sort(by((f) => -f.gap)).slice(0, FURTHEST);
  return worst.length
    ? section(
        'Largest gaps to the best method',
        h(
          'ul',
          {class: 'reasons'},
          worst.map((f) =>
            h(
              'li',
              null,
              name(
                `${f.where}: ${fixed(f.ours, digits)}, place ${f.place} of ${f.of}; ${str(f.best.method)} has ${fixed(f.top, digits)}`,
              ),
            ),
          ),
        ),
      )
    : null;
}

/** A column in words. */
const placeWords = (dataset, bag, noise) =>
  `${labelOf(dataset)}${String(bag) === '0' ? '' : `, ${bagName(dataset, bag)}`}${noise === 'none' ? '' : `, ${noise}`}`;

/** Where the best control is better. */
function belowSection(rows) {
  const {metric, rule} = state;
  const low = lowIsBest(board, metric);
  const digits = num(metricOf(board, metric).digits) ?? 2;
  const below = [];
  for (const {dataset, row} of rows) {
    if (row.oracle || row.control) return null;
    const controls = list(dataset.rows).filter((r) => r.control);
    for (const [noise, cells] of Object.entries(dict(row.cells))) {
      for (const [bag, cell] of Object.entries(dict(cells))) {
        const ours = drawnOf(scoreOf(cell, metric, rule));
        const theirs = controls
          .map((r) => drawnOf(scoreOf(cellOf(r, noise, bag), metric, rule)))
          .filter((v) => v !== null);
        if (ours === null || !theirs.length) continue;
        const best = low ? Math.min(...theirs) : Math.max(...theirs);
        if (low ? ours > best : ours < best)
          below.push(`${placeWords(dataset, bag, noise)}: ${fixed(ours, digits)} against ${fixed(best, digits)}`);
      }
    }
  }
  return section(
    'Where the best control is better',
    below.length
      ? h(
          'ul',
          {class: 'reasons'},
          below.map((text) => h('li', null, name(text))),
        )
      : h('p', {class: 'note'}, 'In no cell shown here.'),
  );
}

/** The card of the bags, those of several groupings, and what as many labelled rows as bags reach. */
function bagTexts(dataset, bag, texts) {
  const labels = labelsOf(dataset, state.metric, state.rule, bag);
  const {title, digits} = metricOf(board, state.metric);
  const reached =
    num(labels.mean) === null
      ? []
      : [`${str(labels.bound)} with as many labelled rows: ${fixed(labels.mean, num(digits) ?? 2)} ${str(title)}`];
  return [...list(texts), ...reached].map((text) => h('p', null, name(text)));
}

function datasetPanel(label) {
  const dataset = list(board.datasets).find((d) => str(d.name) === label);
  if (!dataset) return null;
  const about = dict(dict(board.sources)[str(dataset.base)]);
  const balance = list(about.balance)
    .map((share) => `${fixed(100 * share, 1)} %`)
    .join(', ');
  const cards = Object.entries(dict(dataset.cards_text));
  return [
    panelHead(name(labelOf(dataset)), about.summary ? h('p', {class: 'summary'}, str(about.summary)) : null),
    linkPairs('Dataset', [
      ['name', name(dataset.name)],
      ['source', about.homepage && outward(about.homepage)],
      ['reference', about.citation && name(about.citation)],
      ['licence', about.licence && name(about.licence)],
      ['rows', count(about.rows)],
      ['columns', about.columns && name(typeof about.columns === 'number' ? count(about.columns) : about.columns)],
      ['classes', about.classes && String(about.classes)],
      ['share of each class', balance],
      ['split', about.split && name(about.split)],
      ['package', about.origin && name(about.origin)],
      [
        'block',
        dataset.block &&
          `${str(dataset.block)}${list(dataset.noises).length > 1 && !['unseen', 'tables'].includes(dataset.block) ? '; with noise on counts: privacy' : ''}`,
      ],
    ]),
    cards.length
      ? section(
          'Bags',
          h(
            'dl',
            null,
            cards.map(([bag, texts]) =>
              h('div', null, h('dt', null, bagName(dataset, bag)), h('dd', {class: 'texts'}, bagTexts(dataset, bag, texts))),
            ),
          ),
        )
      : null,
  ];
}
