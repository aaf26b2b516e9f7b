// The first tab: standings over all datasets, by block and by bag size. The numbers are the board's own.

const ALL = 'all';
const bagName = (dataset, bag) =>
  String(bag) === '0' && dataset.self_sized ? str(dataset.self_sized) : `bag ${str(bag)}`;
const bagSize = (dataset, bag) => (String(bag) === '0' ? bagName(dataset, bag) : `bag size ${str(bag)}`);
const bagShort = (bag) => (String(bag) === '0' ? 'own sizes' : String(bag));

/** A dataset with its bags in words: Adult by education. */
const labelOf = (dataset) => str(dataset.label || dataset.name);

const overalls = (board) => list(board.overall).map(dict);
const overallMetrics = (board) => [...new Set(overalls(board).map((o) => str(o.metric)))];
const overallBlocks = (board) => [...new Set(overalls(board).map((o) => str(o.block)))];
const overallOf = (board, {metric, rule, block}) =>
  overalls(board).find((o) => str(o.metric) === metric && str(o.rule) === rule && str(o.block) === block) || dict();

/** Everything the first tab needs: the standings asked for, filtered and sorted, with places that ties share. */
function overallView(board, state) {
  const found = overallOf(board, state);
  const all = list(found.rows).map(dict);
  const places = placesBy(all, (r) => num(r.rank), true);
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (r) =>
    words.every((word) => `${r.method} ${str(aboutMethod(r.method).summary)}`.toLowerCase().includes(word));
  const bags = list(found.bags).map(String);
  const key =
    {
      method: (r) => str(r.method).toLowerCase(),
      rank: (r) => num(r.rank),
      time: (r) => num(r.seconds),
      wins: (r) => num(r.wins),
      scaled: (r) => num(r.scaled),
    }[state.sort] || ((r) => num(list(r.bags)[bags.indexOf(state.sort.slice(4))]));
  const rows = all.filter(matches).sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    const order = x < y ? -1 : x > y ? 1 : 0;
    return state.down ? -order : order;
  });
  const metric = metricOf(board, state.metric);
  return {board, state, found, all, rows, bags, places, metric: str(metric.title || metric.name)};
}

const baseName = (method) => str(method).split(/[[ ]/)[0];
/** The year of its publication; '' without one. */
const yearOf = (about) => (str(about.citation).match(/\b(?:19|20)\d\d\b/) || [''])[0];
/** A method of llpbench itself: it comes along and no publication describes it. */
const isOurs = (about) => !about.citation && !about.control && !about.oracle && /^llpbench\b/.test(str(about.origin));
const aboutMethod = (method) => dict(dict(board.methods)[baseName(method)]);

function overallPanel(view) {
  const {found, all} = view;
  const blocks = overallBlocks(board);
  const inner = mainWidth();
  const two = inner >= 900;
  drawnWidth = inner;
  if (!all.length) {
    return [
      overallHeading(view),
      chooser(view, blocks),
      h('p', {class: 'none'}, 'No two methods share enough cells here yet.'),
      coverageList(),
    ];
  }
  const width = two ? Math.floor((inner - 20) * 0.58) - 34 : inner - 34;
  return [
    overallHeading(view),
    chooser(view, blocks),
    overallAnswer(view, blocks),
    overallTable(view),
    overallLegend(view),
    h(
      'div',
      {class: 'pair uneven spaced'},
      isTested(found) ? differenceChart(view, width) : rankChart(view, width),
      overallCostChart(view, two ? inner - 20 - width - 34 - 34 : inner - 34),
    ),
    h('div', {class: 'pair'}, bagTable(view), blocks.length > 2 ? blockTable(view, blocks) : null),
    list(found.shares).length ? winMatrix(view) : null,
    coverageList(),
  ];
}

function overallHeading(view) {
  const {found, state} = view;
  return h(
    'div',
    {class: 'heading'},
    h(
      'div',
      null,
      h('h2', null, 'All datasets'),
      found.rows
        ? h(
            'p',
            {class: 'note'},
            [
              `${capital(view.metric)}, rule ${state.rule}`,
              `${plural(list(found.rows).length, 'method')} ranked on ${plural(num(found.cells) || 0, 'cell')} that they share`,
              plural(num(found.columns) || 0, 'column'),
              extentOf(found),
              seedsOfColumns(found),
            ].join(' · '),
          )
        : null,
    ),
  );
}

/** 8 datasets from 5 sources. */
const extentOf = (found) =>
  `${plural(num(found.datasets) || 0, 'dataset')} from ${plural(num(found.sources) || 0, 'source')}`;

/** Whether methods were tested against the first: not for every metric, and not with too few sources. */
const isTested = (found) => list(found.rows).some((r) => own(r, 'separated'));

/** How many seeds a column has: 3 seeds, or 2 to 5 seeds, a column. */
function seedsOfColumns(found) {
  const [fewest, most] = list(found.column_seeds);
  return fewest === most ? `${plural(num(most) || 0, 'seed')} a column` : `${fewest} to ${most} seeds a column`;
}

/** Which method is first, how sure that is, and who is first in each block: the answer before the table. */
function overallAnswer(view, blocks) {
  const {found, all, state} = view;
  const [first] = all;
  const unseparated = (o) => list(o.rows).filter((r) => r.separated === false);
  const tested = isTested(found);
  const names = (rows) => rows.map((r, i) => [i ? (i === rows.length - 1 ? ' and ' : ', ') : '', name(str(r.method))]);
  const others = unseparated(found);
  const range = num(first.low) === null ? '' : ` (${fixed(first.low, 1)} to ${fixed(first.high, 1)})`;
  const sure = !tested
    ? found.untested && `; ${str(found.untested)}`
    : !others.length
      ? '; every other method is separated from it'
      : others.length === all.length - 1
        ? '; no other method is separated from it'
        : ['; not separated from it: ', names(others)];
  const part = state.block === ALL ? '' : ` of ${state.block}`;
  const on = `${plural(num(found.columns) || 0, 'column')}${part} (${extentOf(found)})`;
  const parts = state.block === ALL ? blocks.filter((block) => block !== ALL) : [];
  const leader = (block) => {
    const o = overallOf(board, {...state, block});
    const [best] = list(o.rows);
    if (!best) return null;
    const near = unseparated(o).length;
    const words = !isTested(o)
      ? ` (${plural(num(o.sources) || 0, 'source')})`
      : near === list(o.rows).length - 1
        ? ', nobody separated'
        : near
          ? `, ${near} not separated`
          : '';
    return h('li', null, `${block}: `, h('b', null, name(str(best.method))), ` ${fixed(best.rank, 1)}${words}`);
  };
  return h(
    'div',
    {class: 'answer'},
    h(
      'p',
      null,
      h('b', null, name(str(first.method))),
      ` has the best mean rank over ${on}: ${fixed(first.rank, 1)}${range} of ${all.length}`,
      sure,
      '.',
    ),
    parts.length ? h('ul', null, parts.map(leader).filter(Boolean)) : null,
  );
}

/** Seeds in few words: 0 to 4, or one by one. */
function seedsText(seeds) {
  const run = seeds.length > 2 && seeds.every((seed, i) => seed === seeds[0] + i);
  return run ? `${seeds[0]} to ${seeds[seeds.length - 1]}` : seeds.join(', ') || 'none';
}

function overallLegend(view) {
  const {found} = view;
  const unranked = Object.entries(dict(found.unranked)).filter(([, lacks]) => num(lacks));
  const sources = num(found.sources) || 0;
  return h(
    'div',
    {class: 'legend column'},
    h(
      'p',
      null,
      'In each cell (dataset, bags, noise, seed) methods are ranked. Columns of a source have equal weight, and so have sources; datasets that share rows or images have one source. ',
      sources < 2
        ? 'Mean ranks of a single source have no interval. '
        : `The range next to a mean rank is its 95 % interval over resampled sources and seeds${sources < 10 ? `, which is rough with ${sources} sources` : ''}. `,
      'Won is the share of cells won against the others, with the same weights. Score: 0 is the best control, 1 the bound; below 0 is worse than the control. ',
      isTested(found)
        ? '“Not separated” is from the first: Wilcoxon’s test over sources, all pairs corrected together (Holm), finds no significant difference.'
        : found.untested
          ? `There is no test: ${str(found.untested)}.`
          : 'There is no test for this metric.',
    ),
    unranked.length
      ? h(
          'p',
          null,
          `Not ranked because cells are missing that most methods have: ${unranked.map(([m, lacks]) => `${m} (${lacks} of ${found.cells})`).join(', ')}.`,
        )
      : null,
  );
}

/** Mean rank at each bag size. */
function bagTable(view) {
  const {bags, rows, found} = view;
  const counts = list(found.bag_sources).map(num);
  return smallTable(
    'By bag size',
    'Mean rank at each bag size. Below the size: the number of sources, which differ between sizes.',
    bags.map((bag, i) => [bagShort(bag), counts[i] ? h('span', {class: 'of'}, plural(counts[i], 'source')) : null]),
    rows.map((r) => [str(r.method), list(r.bags).map(num)]),
  );
}

/** Mean rank in each block, among those ranked there. */
function blockTable(view, blocks) {
  const parts = blocks.filter((block) => block !== ALL);
  const of = parts.map((block) => overallOf(board, {...view.state, block}));
  const rank = (o, method) =>
    num(
      (
        list(o.rows)
          .map(dict)
          .find((r) => str(r.method) === method) || dict()
      ).rank,
    );
  const methods = [...new Set([...view.all, ...of.flatMap((o) => list(o.rows))].map((r) => str(r.method)))];
  return smallTable(
    'By block',
    'Mean rank within each part of the suite; – where a method is not ranked because of missing cells.',
    parts,
    methods.map((method) => [method, of.map((o) => rank(o, method))]),
  );
}

/** A table of mean ranks in which each column is warm where ranks are good. */
function smallTable(title, note, columns, rows) {
  const ranges = columns.map((_, i) => extent(rows.map(([, values]) => values[i] ?? null)));
  const line = ([method, values]) =>
    h(
      'tr',
      {'data-m': styleOf(method).id},
      h('th', {scope: 'row'}, name(method)),
      values.map((v, i) => h('td', {class: heat(v, ranges[i], true)}, v === null ? '–' : fixed(v, 1))),
    );
  return tableCard({
    title,
    note,
    kind: 'heat',
    head: ['method', ...columns].map((c) => h('th', {scope: 'col'}, c)),
    bodies: h('tbody', null, rows.map(line)),
  });
}

/** Pairwise wins: the share of shared cells in which the row beats the column. */
function winMatrix(view) {
  const {found, all} = view;
  const methods = all.map((r) => str(r.method));
  const shade = (share) => (share === null ? '' : `w${Math.round(share / 12.5)}`);
  const cell = (m, i, other, j) => {
    const share = num(list(list(found.shares)[i])[j]);
    const title = share === null ? null : `${m} beats ${other} in ${fixed(share, 1)} % of cells`;
    return i === j
      ? h('td', {class: 'self'}, '')
      : h('td', {class: shade(share), title}, share === null ? '–' : fixed(share, 0));
  };
  return tableCard({
    title: 'Pairwise wins',
    note: 'Percentage of shared cells (dataset, bags, noise, seed; sources have equal weight) in which the method of the row beats the method of the column. Columns are numbered by rank.',
    kind: 'matrix',
    caption: 'Share of cells won, rows against columns',
    head: [
      h('th', {scope: 'col'}, 'method'),
      methods.map((m, i) => h('th', {scope: 'col', title: m}, h('span', {class: 'sr'}, `${m} `), i + 1)),
    ],
    bodies: h(
      'tbody',
      null,
      methods.map((m, i) =>
        h(
          'tr',
          {'data-m': styleOf(m).id},
          h('th', {scope: 'row'}, h('span', {class: 'muted'}, `${i + 1} `), name(m)),
          methods.map((other, j) => cell(m, i, other, j)),
        ),
      ),
    ),
  });
}

/** How much of each block there is, and of each part of a suite: a line for each. */
function coverageList() {
  const lines = (texts) =>
    h(
      'ul',
      null,
      texts
        .map(str)
        .filter(Boolean)
        .map((line) => h('li', null, name(line))),
    );
  const blocks = list(board.coverage).map((c) => dict(c).text);
  const suites = Object.entries(dict(board.suites));
  return blocks.length || suites.length
    ? h(
        'section',
        {class: 'card coverage'},
        h('h3', null, 'Coverage'),
        lines(blocks),
        suites.map(([suite, about]) => [
          h('h4', null, 'Of the suite ', name(suite), ' (', name(dict(about).state), '), controls and bounds included'),
          lines(list(dict(about).parts)),
        ]),
      )
    : null;
}
