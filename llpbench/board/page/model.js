// What is to be shown: the board seen through a state. Pure functions; no node is made here.

const SHAPES = 10;
const HUES = 10;

/** A colour and a shape for every method, the same on every chart and dataset. Controls are grey, bounds are ink. */
function methodStyles(board) {
  const styles = new Map();
  let plain = 0;
  let grey = 0;
  for (const dataset of list(board.datasets)) {
    for (const row of list(dataset.rows)) {
      const label = str(row.method);
      if (styles.has(label)) continue;
      if (row.oracle) styles.set(label, {hue: 'kb', shape: 0, id: styles.size});
      else if (row.control) styles.set(label, {hue: 'kc', shape: grey++ % SHAPES, id: styles.size});
      else {
        const turn = Math.floor(plain / HUES); // each turn through the colours has other shapes
        styles.set(label, {hue: `k${plain % HUES}`, shape: (plain + turn) % SHAPES, id: styles.size});
        plain++;
      }
    }
  }
  return styles;
}

/** The bag sizes at which anything was run under a noise level; all of the dataset where nothing was. */
function bagsAt(dataset, noise) {
  const all = list(dataset.bags).map(String);
  const there = (cell) => own(cell, 'status') && cell.status !== 'missing';
  const run = all.filter((bag) => list(dataset.rows).some((row) => !row.oracle && there(cellOf(row, noise, bag))));
  return run.length ? run : all;
}

const cellOf = (row, noise, bag) => dict(dict(dict(row.cells)[noise])[bag]);
const scoreOf = (cell, metric, rule) => dict(dict(cell.scores)[`${metric} ${rule}`]); // as trim.py writes it
/** The number by which methods of a column are compared: over the seeds they share; none for who lacks some. */
const fairOf = (score) => num(own(score, 'shared') ? score.shared : score.mean); // as trim.py writes it
/** The mean as it is drawn and coloured: the one that is compared, or its own for who is not compared. */
const drawnOf = (score) => (num(score.mean) === null ? null : (fairOf(score) ?? score.mean));
/** A score as it is read from noise level to noise level: over seeds that the method has at all of them. */
const levelOf = (score) => (own(score, 'at_all_noises') ? dict(score.at_all_noises) : score);
/** What a bound reaches with as many labelled rows as there are training bags. */
const labelsOf = (dataset, metric, rule, bag) => dict(dict(dict(dict(dataset.as_many_labels)[metric])[rule])[bag]);
const fitOf = (cell) => num(dict(cell.seconds).fit);

function median(values) {
  const sorted = values.filter((v) => v !== null).sort((a, b) => a - b);
  if (!sorted.length) return null;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Places 1, 2, 2, 4 of items by a value; items without one have none. Returns a Map from method to place. */
function placesBy(rows, value, lowIsBest) {
  const scored = rows.map((row) => [str(row.method), value(row)]).filter(([, v]) => v !== null);
  scored.sort((a, b) => (lowIsBest ? a[1] - b[1] : b[1] - a[1]));
  const places = new Map();
  scored.forEach(([method, v], i) => {
    const tied = i > 0 && scored[i - 1][1] === v;
    places.set(method, tied ? places.get(scored[i - 1][0]) : i + 1);
  });
  return places;
}

function meanRanks(dataset, metric, rule) {
  const ranks = new Map();
  for (const entry of list(dict(dict(dataset.ranks)[metric])[rule])) ranks.set(str(entry.method), num(entry.mean_rank));
  return ranks;
}

const COLOURED = 5;

/** The methods that charts draw in grey until they are pointed at: all but the first ones, by place or by order. */
function restOf(rows) {
  const methods = rows.filter((r) => !r.control);
  const placed = methods.filter((r) => r.place !== null).sort(by((r) => r.place));
  const first = [...placed, ...methods.filter((r) => r.place === null)].slice(0, COLOURED);
  return new Set(methods.filter((r) => !first.includes(r)).map((r) => r.method));
}

/** Series with the grey ones first, so that they lie below. */
const restFirst = (rows, rest) => [...rows].sort(by((r) => !rest.has(r.method)));

/** Everything the panel of a dataset needs. */
function viewOf(board, state) {
  const dataset = list(board.datasets).find((d) => d.name === state.dataset) || dict();
  const {rule, noise} = state;
  const metric = metricOf(board, state.metric);
  const low = lowIsBest(board, state.metric);
  const digits = num(metric.digits) ?? 2;
  const bags = bagsAt(dataset, noise);
  const rules = ruleNames(board);
  const other = rules.find((r) => r !== rule) || '';
  const score = (cell, under = rule) => scoreOf(cell, state.metric, under);
  const fair = (row, at, bag, under = rule) => fairOf(score(cellOf(row, at, bag), under));
  const paper = (row, bag) => {
    const found = dict(dict(cellOf(row, noise, bag).paper)[state.metric]);
    return num(found.mean) === null ? null : found;
  };
  /** The bound of a bag size: that of its own test rows, or the one of all bag sizes. */
  const boundOf = (under, bag) => {
    const bagged = own(dataset, 'bag_bounds') ? dict(dict(dict(dataset.bag_bounds)[state.metric])[bag]) : null;
    return dict((bagged || dict(dict(dataset.bounds)[state.metric]))[under]);
  };
  const papers = list(dataset.paper).filter((p) => str(p.noise || 'none') === noise && str(p.metric) === state.metric);
  const all = list(dataset.rows).filter((row) => !row.oracle);
  const ranks = {[rule]: meanRanks(dataset, state.metric, rule), [other]: meanRanks(dataset, state.metric, other)};
  const marked = (row) => bags.some((bag) => ['best', 'second'].some((mark) => score(cellOf(row, noise, bag))[mark]));
  const variants = variantsOf(all);
  /** Variants lie folded under their method, unless they are opened, or best or second somewhere here. */
  const folded = (row) => {
    const of = str(row.name);
    return variants.has(of) && of !== str(row.method) && !state.open.includes(of) && !marked(row);
  };
  const ranked = (r) =>
    placesBy(
      all.filter((row) => !row.control && !folded(row)),
      (row) => ranks[r].get(str(row.method)) ?? null,
      true,
    );
  const places = ranked(rule);
  const otherPlaces = ranked(other);
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (row) => {
    const text = `${row.method} ${row.name} ${row.summary}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const rows = all
    .filter((row) => matches(row) && (state.controls || !row.control) && (words.length > 0 || !folded(row)))
    .map((row) => ({
      row,
      method: str(row.method),
      control: Boolean(row.control),
      variants: variants.get(str(row.method)) || 0,
      rank: ranks[rule].get(str(row.method)) ?? null,
      place: places.get(str(row.method)) ?? null,
      moved:
        places.has(str(row.method)) && otherPlaces.has(str(row.method))
          ? otherPlaces.get(str(row.method)) - places.get(str(row.method))
          : null,
      fit: median(bags.map((bag) => fitOf(cellOf(row, noise, bag)))),
      drawn: bags.map((bag) => drawnOf(score(cellOf(row, noise, bag)))),
      fair: bags.map((bag) => fair(row, noise, bag)),
    }));
  /** The number of the best control at each bag size; null where there is none. */
  const yardsticks = bags.map((bag) => {
    const found = all.filter((row) => row.control).map((row) => drawnOf(score(cellOf(row, noise, bag))));
    const range = extent(found);
    return range && range[low ? 0 : 1];
  });
  return {
    board,
    dataset,
    state,
    bags,
    yardsticks,
    rule,
    rules,
    noise,
    other,
    all,
    digits,
    score,
    matches,
    fair,
    paper,
    papers,
    lowIsBest: low,
    rows: sortRows(rows, state, bags, low),
    rest: restOf(rows),
    percent: metric.percent !== false,
    metric: str(metric.title || metric.name),
    measuredOn: str(metric.measured_on || 'test rows'),
    unit: metric.percent === false ? '' : ' %',
    number: (x) => fixed(x, digits),
    meanSd: (r) => meanSd(r, digits),
    boundOf,
    labelsAt: (bag) => labelsOf(dataset, state.metric, rule, bag),
    bound: dict(dict(dict(dataset.bounds)[state.metric])[rule]),
    bagBounds: own(dataset, 'bag_bounds') ? bags.map((bag) => boundOf(rule, bag)) : [],
    judged: list(dataset.claims).some((c) => str(c.metric) === state.metric),
    bounds: list(dataset.rows).filter((row) => row.oracle),
    allUnreleased: all.length > 0 && all.every((row) => row.unreleased),
    hasControls: all.some((row) => row.control),
    hasPaper: papers.length > 0 || all.some((row) => bags.some((bag) => paper(row, bag))),
  };
}

/** How many variants (the same with other settings) a method has, by its name, where it is there at its defaults. */
function variantsOf(rows) {
  const names = new Set(rows.map((row) => str(row.method)));
  const found = new Map();
  for (const row of rows) {
    const of = str(row.name);
    if (of !== str(row.method) && names.has(of)) found.set(of, (found.get(of) || 0) + 1);
  }
  return found;
}

/** Rows in the order asked for; what has no value comes last, whichever way round; ties keep their order. */
function sortRows(rows, {sort, down}, bags, low) {
  const column = sort.startsWith('bag-') ? bags.indexOf(sort.slice(4)) : -1;
  const key =
    {method: (r) => r.method.toLowerCase(), rank: (r) => r.rank, time: (r) => r.fit}[sort] ||
    ((r) => r.fair[column] ?? null);
  const fallback = (r) => r.drawn[r.drawn.length - 1] ?? null;
  return rows
    .map((r, i) => [r, i])
    .sort(([a, i], [b, j]) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) {
        if (x !== y) return (x === null) - (y === null);
        const [u, v] = [fallback(a), fallback(b)];
        if (u === null || v === null) return (u === null) - (v === null) || i - j;
        return (low ? u - v : v - u) || i - j;
      }
      const order = x < y ? -1 : x > y ? 1 : 0;
      return (down ? -order : order) || i - j;
    })
    .map(([r]) => r);
}

/** The epsilon of a noise level (Infinity without noise), null when it cannot be told. */
function epsilonOf(dataset, noise) {
  if (own(dataset.epsilons, noise)) return dataset.epsilons[noise] === null ? Infinity : num(dataset.epsilons[noise]);
  return noise === 'none' ? Infinity : null;
}
