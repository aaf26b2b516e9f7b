// The table: methods down, bag sizes across. One tab stop for all cells; arrows walk, Enter opens.

const STATUS = {
  partial: 'some seeds are missing',
  skipped: 'the method declined this setting',
  failed: 'the run failed',
  missing: 'not run',
  ok: 'not defined',
};

const statusWords = (status) => (own(STATUS, status) ? STATUS[status] : status);

function sortHeader(view, key, label, props, change) {
  const {sort, down} = view.state;
  const active = sort === key;
  return h(
    'th',
    {scope: 'col', 'aria-sort': active ? (down ? 'descending' : 'ascending') : 'none', ...props},
    h(
      'button',
      {
        type: 'button',
        class: 'sort',
        'data-key': `sort-${key}`,
        click: () => change({sort: key, down: active ? !down : startsDown(key, view.lowIsBest)}),
      },
      label,
      h('span', {class: 'dir', 'aria-hidden': 'true'}, active ? (down ? '▼' : '▲') : ''),
    ),
  );
}

/** Whether there is more than one bag size, so that a line can be drawn. */
const hasTrend = (view) => view.bags.length > 1;

function renderTable(view, actions) {
  const {bags, dataset} = view;
  const head = h(
    'tr',
    null,
    sortHeader(
      view,
      'rank',
      'Rank',
      {class: 'rank', title: `By mean rank over the cells that methods share, rule ${view.rule}`},
      actions.change,
    ),
    sortHeader(view, 'method', 'Method', {class: 'method'}, actions.change),
    bags.map((bag) => sortHeader(view, `bag-${bag}`, bagHead(view.dataset, bag), {class: 'num'}, actions.change)),
    hasTrend(view) ? h('th', {scope: 'col', class: 'spark'}, 'Trend') : null,
    sortHeader(
      view,
      'time',
      'Fit, s',
      {class: 'num time', title: 'Seconds of one fit, median over bag sizes'},
      actions.change,
    ),
  );
  const extents = bags.map((_, i) => extent(view.rows.filter((r) => !r.control).map((r) => r.drawn[i])));
  const spark = (control) => extent(view.rows.filter((r) => r.control === control).flatMap((r) => r.drawn));
  const line = (r) => tableRow(view, r, extents, spark(r.control), actions);
  const rows = withVariantsBelow(view.rows, view.state.open);
  const methods = rows.filter((r) => !r.control);
  const controls = rows.filter((r) => r.control);
  const width = bags.length + (hasTrend(view) ? 4 : 3);
  const none = view.rows.length
    ? null
    : h(
        'tbody',
        null,
        h(
          'tr',
          null,
          h(
            'td',
            {colspan: width, class: 'none'},
            view.all.length ? 'No method matches the filter.' : 'No results for this dataset yet.',
          ),
        ),
      );
  const table = h(
    'table',
    {class: 'board', keydown: walk},
    h(
      'caption',
      {class: 'sr'},
      `${str(dataset.title || dataset.name)}: ${view.metric}${view.unit} by method and bag size, ` +
        `selection rule ${view.rule}, noise ${view.noise}. Mean and standard deviation over seeds.`,
    ),
    h('thead', null, head),
    methods.length ? h('tbody', null, methods.map(line)) : null,
    controls.length
      ? h(
          'tbody',
          {class: 'controls-body'},
          groupHead(
            width,
            'Controls',
            'one column, random labels, counts of other bags: baselines that a method should beat',
          ),
          controls.map(line),
        )
      : null,
    labelRows(view, width),
    none,
  );
  const first = table.querySelector('.cell');
  if (first) first.tabIndex = 0;
  return h(
    'div',
    {class: 'scroll', role: 'region', 'aria-label': 'Results table', tabindex: '0', 'data-key': 'scroll'},
    table,
  );
}

const groupHead = (width, title, note) =>
  h(
    'tr',
    {class: 'group'},
    h('th', {colspan: width, scope: 'rowgroup'}, h('div', null, `${title} `, h('span', null, note))),
  );

/** What as many labelled rows as bags would give, and what the bags of the best method are worth, for each column. */
function labelRows(view, width) {
  const found = view.bags.map((bag) => view.labelsAt(bag));
  const [first] = found.filter((labels) => labels.bound);
  if (!first) return null;
  const worth = view.bags.map((bag) => {
    const scores = view.rows.filter((r) => !r.control).map((r) => dict(view.score(cellOf(r.row, view.noise, bag))));
    return str((scores.find((score) => score.best) || (scores.length === 1 ? scores[0] : dict())).worth);
  });
  const line = (what, title, values) =>
    h(
      'tr',
      null,
      h('td', {class: 'rank'}, ''),
      h('th', {scope: 'row', class: 'method', title}, h('span', {class: 'who'}, what)),
      values.map(([value, beside]) =>
        h(
          'td',
          {class: 'num'},
          h('div', {class: 'cell'}, h('span', {class: 'mean'}, value || '–'), h('span', {class: 'sd'}, value && beside)),
        ),
      ),
      h('td', {colspan: width - 2 - view.bags.length}, ''),
    );
  return h(
    'tbody',
    {class: 'controls-body'},
    groupHead(
      width,
      'Labelled rows',
      `${str(first.bound)} is trained on labelled rows instead of bags. In theory a random bag is worth about one of them, whatever its size.`,
    ),
    line(
      'one for each bag',
      `${view.metric} of ${str(first.bound)} with as many labelled rows as there are training bags`,
      found.map((labels) => [num(labels.mean) === null ? '' : view.number(labels.mean), `${count(labels.bags)} rows`]),
    ),
    line(
      'worth of the bags',
      `Labelled rows with which ${str(first.bound)} has the ${view.metric} of the best method of the column`,
      worth.map((text, i) => [text, `${count(found[i].bags)} bags`]),
    ),
  );
}

/** Rows with the variants of an opened method right below it, whatever the order is. */
function withVariantsBelow(rows, open) {
  const opened = new Set(rows.map((r) => r.method).filter((method) => open.includes(method)));
  const of = (r) => (r.method !== str(r.row.name) && opened.has(str(r.row.name)) ? str(r.row.name) : null);
  return rows
    .filter((r) => of(r) === null)
    .flatMap((r) => [r, ...rows.filter((v) => of(v) === r.method).map((v) => ({...v, below: true}))]);
}

/** The head of a column: its bag size, or how bags are formed that size themselves. */
const bagHead = (dataset, bag) => (bag === '0' ? bagName(dataset, bag) : [h('span', {class: 'unit'}, 'bag '), bag]);

/** What must be said of a whole row, beside its name. */
function rowMarks(row, allUnreleased) {
  const {verified} = row;
  const marks = [
    row.whose ? [str(row.whose), row.whose === 'yours' ? 'From your results folder' : 'From the leaderboard'] : null,
    row.unreleased && !allUnreleased ? ['unreleased', 'Made by code that was not installed from a release'] : null,
    verified
      ? [
          `✓ ${str(verified.cells)} of ${str(verified.of)} cells reproduced`,
          `Run again with equal numbers, latest ${str(verified.latest)}`,
        ]
      : null,
  ].filter(Boolean);
  return marks.map(([text, title]) => h('span', {class: `rowmark ${text === 'yours' ? 'yours' : ''}`, title}, text));
}

function tableRow(view, r, extents, spark, actions) {
  return h(
    'tr',
    {class: r.below ? 'variant' : null, 'data-m': actions.styles.get(r.method).id},
    h('td', {class: 'rank'}, r.control ? h('span', {class: 'muted'}, '–') : placeOf(view, r)),
    h(
      'th',
      {scope: 'row', class: 'method', title: r.row.summary ? `${r.method}: ${str(r.row.summary)}` : r.method},
      h(
        'span',
        {class: 'who'},
        glyph(actions.styles.get(r.method)),
        methodLink(r.method),
        r.variants ? foldButton(r.method, r.variants) : null,
      ),
      rowMarks(r.row, view.allUnreleased),
    ),
    view.bags.map((bag, i) =>
      h('td', {class: 'num'}, cellButton(view, r, bag, heat(r.drawn[i], extents[i], view.lowIsBest), actions)),
    ),
    hasTrend(view) ? h('td', {class: 'spark'}, sparkline(r.drawn, spark, actions.styles.get(r.method))) : null,
    h('td', {class: 'num time'}, amount(r.fit)),
  );
}

function placeOf(view, r) {
  if (r.place === null)
    return h(
      'span',
      {class: 'muted', title: 'Not ranked: cells are missing that most methods have, or it is a hidden variant'},
      '–',
    );
  const moved = r.moved || 0;
  const word = moved > 0 ? 'higher' : 'lower';
  const arrow =
    moved === 0
      ? null
      : h(
          'span',
          {
            class: `moved ${moved > 0 ? 'up' : 'down'}`,
            title: `${plural(Math.abs(moved), 'place')} ${word} than under rule ${view.other}`,
          },
          h('span', {'aria-hidden': 'true'}, `${moved > 0 ? '▲' : '▼'}${Math.abs(moved)}`),
          h('span', {class: 'sr'}, ` (${Math.abs(moved)} ${word} than under rule ${view.other})`),
        );
  return h(
    'span',
    {class: 'place', title: r.rank === null ? null : `mean rank ${fixed(r.rank)}`},
    h('b', null, r.place),
    arrow,
  );
}

/** What must be said of the seeds behind a mean, and the mean that is compared. */
function seedsNote(view, score) {
  const shared = num(score.shared) === null ? '' : view.number(score.shared);
  return [str(score.note), shared && shared !== view.number(score.mean) ? `shared ${shared}` : '']
    .filter(Boolean)
    .join(', ');
}

/** A score as a table shows it: the mean that is compared is the large one, that over other seeds stands below it. */
function shownScore(view, score) {
  const mean = drawnOf(score);
  const compared = mean === null || view.number(mean) === view.number(score.mean);
  const note = str(score.note);
  return {
    mean: mean === null ? null : view.number(compared ? score.mean : mean),
    sd: num(compared ? score.sd : score.shared_sd),
    note: compared || !note ? note : `${note}: ${view.number(score.mean)}`,
  };
}

/** A mean with its deviation and what must be said of its seeds, for a note by the pointer and the data of a chart. */
const toldMean = (view, score) => [view.meanSd(score), seedsNote(view, score)].filter(Boolean).join(' · ');
/** What is said below a chart where points are not at the means of all seeds. */
const drawnNote = (scores) =>
  scores.some((p) => plot(p.mean) !== null && drawnOf(p) !== p.mean)
    ? ' Methods with other seeds than most are drawn at their mean over the seeds that methods share.'
    : '';

/** Whether a number is worse than that of the best control. */
function belowControl(view, bag, value) {
  const yardstick = view.yardsticks[view.bags.indexOf(bag)];
  return yardstick !== null && (view.lowIsBest ? value > yardstick : value < yardstick);
}

function cellButton(view, r, bag, warmth, actions) {
  const cell = cellOf(r.row, view.noise, bag);
  const score = view.score(cell);
  const status = str(cell.status || 'missing');
  const has = num(score.mean) !== null;
  const shown = shownScore(view, score);
  const mark = has ? (score.best ? 'best' : score.second ? 'second' : '') : 'status';
  const tied = has && score.separated === false;
  const under = has && !r.control && belowControl(view, bag, drawnOf(score));
  const paper = view.state.paper ? view.paper(r.row, bag) : null;
  const said = [
    `${r.method}, ${bagName(view.dataset, bag)}:`,
    has ? `${shown.mean}${shown.sd === null ? '' : `, standard deviation ${view.number(shown.sd)}`}` : status,
    score.best ? ', best' : score.second ? ', second' : '',
    tied ? (score.best ? ', not separated from the second' : ', not separated from the best') : '',
    under ? ', below a control' : '',
    has && status !== 'ok' ? `, ${statusWords(status)}` : '',
    has && shown.note ? `, ${shown.note}` : '',
    paper ? `, paper ${view.number(paper.mean)}` : '',
  ]
    .join(' ')
    .replaceAll(' ,', ',');
  return h(
    'button',
    {
      type: 'button',
      tabindex: '-1',
      'aria-haspopup': 'dialog',
      'aria-label': said,
      class: `cell ${mark} ${warmth}`,
      'data-key': `cell-${bag}-${r.method}`,
      'data-bag': bag,
      title: has ? (status === 'ok' ? null : statusWords(status)) : str(cell.reason) || statusWords(status),
      click: () => actions.open(r.method, bag),
    },
    has
      ? [
          h('span', {class: 'mean'}, shown.mean),
          h('span', {class: 'sd'}, shown.sd === null ? '' : `(${view.number(shown.sd)})`),
          h('span', {class: 'tie'}, status !== 'ok' && !tied ? '◌' : under ? '▽' : tied ? '≈' : ''),
        ]
      : h('span', {class: 'pill'}, status === 'ok' ? 'undefined' : status),
    has && shown.note ? h('span', {class: 'paper seeds'}, shown.note) : null,
    paper ? h('span', {class: 'paper'}, `paper ${view.number(paper.mean)}`) : null,
  );
}

function extent(values) {
  const found = values.filter((v) => v !== null);
  return found.length ? [Math.min(...found), Math.max(...found)] : null;
}

/** Five steps of warmth within a column, so that a column can be read at a glance. */
function heat(value, range, lowIsBest) {
  if (value === null || !range || range[1] === range[0]) return '';
  const share = (value - range[0]) / (range[1] - range[0]);
  return `h${Math.round(4 * Math.max(0, Math.min(1, lowIsBest ? 1 - share : share)))}`;
}

/** Arrow keys, Home and End walk over the cells; a cell that was left is not a tab stop any more. */
function walk(event) {
  const step = {
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    Home: [0, -99],
    End: [0, 99],
  }[event.key];
  const from = event.target.closest('.cell');
  if (!step || !from || event.altKey || event.ctrlKey || event.metaKey) return;
  const grid = [...event.currentTarget.querySelectorAll('tr[data-m]')].map((row) => [...row.querySelectorAll('.cell')]);
  const y = grid.findIndex((row) => row.includes(from));
  const x = grid[y].indexOf(from);
  const within = (v, n) => Math.max(0, Math.min(n - 1, v));
  const to = grid[within(y + step[0], grid.length)][within(x + step[1], grid[y].length)];
  event.preventDefault();
  from.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

/** A card with a small table that scrolls sideways by itself: `head` are the cells of its head, `bodies` what follows. */
function tableCard({title, note, kind, caption, head, bodies, more = ''}) {
  return h(
    'section',
    {class: `card ${more}`.trim()},
    h('h3', null, title),
    h('p', {class: 'note'}, note),
    h(
      'div',
      {class: 'scroll', role: 'region', 'aria-label': title, tabindex: '0'},
      h(
        'table',
        {class: `small ${kind}`},
        h('caption', {class: 'sr'}, caption || title),
        h('thead', null, h('tr', null, head)),
        bodies,
      ),
    ),
  );
}
