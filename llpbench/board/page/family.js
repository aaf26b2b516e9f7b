// The datasets of one tab side by side: the same rows in other bags or with other options, a line for each setting.

const OPTION_EDGE = /[()[\],;=]/;
const WORD_EDGE = /[()[\],;= ]/;

/** The datasets that share the tab of one. */
const familyOf = (dataset) => list(board.datasets).filter((d) => baseOf(d) === baseOf(dataset));

/** How many characters all texts share at their beginning, up to an edge. */
function sharedHead(texts, edge) {
  const [first = ''] = texts;
  let head = 0;
  for (let i = 0; i < first.length && texts.every((text) => text[i] === first[i]); i++)
    if (edge.test(first[i])) head = i + 1;
  return head;
}

/** What tells the datasets of a family apart: their titles, or names if titles are equal, without what all have. */
function familyNames(family) {
  const back = (text) => [...text].reverse().join('');
  const titles = family.map((d) => str(d.label));
  const texts = new Set(titles).size === titles.length ? titles : family.map((d) => str(d.name));
  const own = texts.map((text, i) => text.slice(baseOf(family[i]).length));
  const tail = sharedHead(own.map(back), WORD_EDGE);
  const cut = own.map((text) => text.slice(0, text.length - tail));
  const long = cut.filter(Boolean);
  const head = long.length > 1 ? sharedHead(long, OPTION_EDGE) : 0;
  return cut.map((text, i) => {
    const short = text.slice(head).replace(/^[()[\], ]+|[\], ]+$/g, '');
    return (short.includes('(') ? short : short.replace(/\)$/, '')) || capital(baseOf(family[i]));
  });
}

/** Lines of (dataset, bag size) with the number of every method; means over the lines that most methods have. */
function familyLines(view, family) {
  const names = familyNames(family);
  const rows = family.flatMap((d) => list(d.rows)).filter((row) => !row.oracle && !row.control && view.matches(row));
  const others = rows.filter((row) => str(row.name) === str(row.method)).map((row) => str(row.method));
  const methods = [...new Set([...view.rows.filter((r) => !r.control).map((r) => r.method), ...others])];
  const lines = family.flatMap((dataset, i) => {
    const bags = bagsAt(dataset, view.noise);
    return bags.map((bag) => {
      const found = new Map(list(dataset.rows).map((row) => [str(row.method), row]));
      const values = methods.map((m) => (found.has(m) ? view.fair(found.get(m), view.noise, bag) : null));
      const label = bags.length > 1 ? `${names[i]}, ${bagName(dataset, bag)}` : names[i];
      return {dataset, label, values};
    });
  });
  const there = lines.filter(({values}) => values.some((v) => v !== null));
  const usual = there.filter(({values}) => values.filter((v) => v !== null).length > methods.length / 2);
  const means = methods.map((_, j) => {
    const column = usual.map(({values}) => values[j]);
    return column.length && column.every((v) => v !== null) ? column.reduce((a, b) => a + b, 0) / column.length : null;
  });
  const rest = there.filter((line) => !usual.includes(line));
  return {methods, lines: [...usual, ...rest], usual, means};
}

/** All settings of a tab in one table; pressing a line opens it above. Nothing where there is only one setting. */
function familyTable(view) {
  const {methods, lines, usual, means} = familyLines(view, familyOf(view.dataset));
  if (new Set(lines.map(({dataset}) => dataset)).size < 2 || methods.length < 2) return null;
  const cells = (values) => {
    const range = extent(values);
    const top = range ? range[view.lowIsBest ? 0 : 1] : null;
    return values.map((v) =>
      h(
        'td',
        {class: heat(v, range, view.lowIsBest)},
        v === null ? '–' : h(v === top ? 'b' : 'span', null, view.number(v)),
      ),
    );
  };
  const line = ({dataset, label, values}) =>
    h(
      'tr',
      {class: dataset === view.dataset ? 'here' : null},
      h(
        'th',
        {scope: 'row', title: str(dataset.name)},
        h(
          'button',
          {
            type: 'button',
            class: 'link',
            'aria-current': dataset === view.dataset ? 'true' : null,
            'data-key': `family-${label}`,
            click: () => change({dataset: str(dataset.name), cell: null}),
          },
          name(label),
        ),
      ),
      cells(values),
    );
  const scope =
    usual.length < lines.length ? `the ${usual.length} of ${plural(lines.length, 'line')} that most methods have` : '';
  return tableCard({
    title: `All bags and options of ${capital(baseOf(view.dataset))}`,
    note: `${capital(view.metric)}${view.unit}${view.lowIsBest ? ' (low is best)' : ''}, rule ${view.rule}, noise ${view.noise}: mean over seeds; the best of a line is bold. ${scope ? `The mean is over ${scope}.` : ''}`,
    kind: 'heat',
    more: 'family',
    head: [
      h('th', {scope: 'col'}, 'bags and options'),
      methods.map((m) => h('th', {scope: 'col', class: 'tall', 'data-m': styleOf(m).id}, h('span', null, name(m)))),
    ],
    bodies: [
      h('tbody', {class: 'mean'}, h('tr', null, h('th', {scope: 'row'}, `mean of ${usual.length}`), cells(means))),
      h('tbody', null, lines.map(line)),
    ],
  });
}
