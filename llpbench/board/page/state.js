// What the reader chose, kept in the address so that a view can be shared. Pure: text in, checked state out.

const own = (object, key) => Object.prototype.hasOwnProperty.call(dict(object), key);

/** The dataset whose bags or options these are: the name of a tab. */
const baseOf = (dataset) => str(dataset.base || dataset.name);
const MAIN_METRIC = 'auroc';
const ruleNames = (board) => list(board.rules).map((rule) => str(dict(rule).name));
const metricOf = (board, metric) =>
  list(board.metrics)
    .map(dict)
    .find((m) => str(m.name) === metric) || dict();
const lowIsBest = (board, metric) => metricOf(board, metric).higher === false;

/** Whether a column that is sorted for the first time has its large values on top: the good ones. */
const startsDown = (sort, lowIsBest) => ['wins', 'scaled'].includes(sort) || (sort.startsWith('bag-') && !lowIsBest);

/** The dataset that a name opens: the one of that name, or of its tab the usual bags, else the one with most methods. */
function datasetNamed(datasets, wanted) {
  const family = datasets.filter((d) => baseOf(d) === wanted);
  const most = Math.max(...family.map((d) => list(d.rows).length));
  return datasets.find((d) => str(d.name) === wanted) || family.find((d) => list(d.rows).length === most);
}

/** The state an address asks for; whatever does not fit the board falls back to the default. */
function readState(hash, board) {
  const asked = new URLSearchParams(hash.replace(/^#/, ''));
  const datasets = list(board.datasets);
  const chosen = datasetNamed(datasets, asked.get('dataset'));
  const overall = !chosen && overalls(board).length > 0; // the first tab is about all datasets
  const dataset = overall ? dict() : chosen || datasets[0] || dict();
  const blocks = overallBlocks(board);
  const pick = (key, allowed, fallback) => (allowed.includes(asked.get(key)) ? asked.get(key) : fallback);
  const noise = pick('noise', list(dataset.noises), list(dataset.noises)[0] || '');
  const bags = bagsAt(dataset, noise);
  const sorts = ['rank', 'method', 'time', ...(overall ? ['wins', 'scaled'] : bags.map((bag) => `bag-${bag}`))];
  const sort = pick('sort', sorts, 'rank');
  const rules = ruleNames(board);
  const metrics = overall ? overallMetrics(board) : list(dataset.metrics).map(str);
  const metric = pick('metric', metrics, metrics.includes(MAIN_METRIC) ? MAIN_METRIC : metrics[0] || '');
  return {
    overall,
    dataset: str(dataset.name),
    block: pick('block', blocks, blocks[0] || ''),
    size: (asked.get('size') || '').slice(0, 9),
    budget: pick('budget', ['1', '10', '60'], ''),
    open: (asked.get('open') || '').split('|').filter(Boolean).slice(0, 99),
    method: (asked.get('method') || '').slice(0, 500),
    data: (asked.get('data') || '').slice(0, 500),
    metric,
    rule: pick('rule', rules, rules[0] || ''),
    noise,
    filter: (asked.get('filter') || '').slice(0, 200),
    sort,
    down: pick('dir', ['up', 'down'], startsDown(sort, lowIsBest(board, metric)) ? 'down' : 'up') === 'down',
    bag: pick('bag', bags, bags.includes('512') ? '512' : bags[bags.length - 1] || ''),
    paper: asked.get('paper') === '1',
    share: asked.get('share') === '1',
    controls: asked.get('controls') !== '0',
    cell: readCell(asked.get('cell')),
  };
}

function readCell(text) {
  const at = (text || '').indexOf('@');
  return at > 0 ? {bag: text.slice(0, at), method: text.slice(at + 1)} : null;
}

/** The address of a state: only what differs from the defaults, and what the tab does not have is left out. */
function writeState(state, board) {
  const {dataset, sort, metric, noise, bag} = state;
  const read = (asked) => readState(new URLSearchParams(asked).toString(), board);
  const usual = read({dataset, sort, metric});
  const first = read({dataset});
  const kept = read({dataset, sort, metric, noise, bag});
  const out = new URLSearchParams();
  const put = (key, value, standard) => {
    if (value !== standard) out.set(key, value);
  };
  put('dataset', state.dataset, readState('', board).dataset);
  put('block', state.block, usual.block);
  put('size', state.overall ? state.size : '', '');
  put('budget', state.overall ? state.budget : '', '');
  put('metric', state.metric, first.metric);
  put('rule', state.rule, usual.rule);
  put('noise', kept.noise, usual.noise);
  put('filter', state.filter, '');
  put('sort', kept.sort, 'rank');
  if (kept.sort === sort) put('dir', state.down ? 'down' : 'up', usual.down ? 'down' : 'up');
  put('bag', kept.bag, read({dataset, noise: kept.noise}).bag);
  put('paper', state.paper ? '1' : '0', '0');
  put('share', state.share ? '1' : '0', '0');
  put('controls', state.controls ? '1' : '0', '1');
  put('open', state.open.join('|'), '');
  put('method', state.method, '');
  put('data', state.data, '');
  if (state.cell) out.set('cell', `${state.cell.bag}@${state.cell.method}`);
  const text = out.toString();
  return text ? `#${text}` : '';
}
