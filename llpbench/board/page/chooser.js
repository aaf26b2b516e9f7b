// Which method for my data? A kind of bags, their size and the seconds one has give three methods and why.

const BUDGETS = [
  ['1', '1 s'],
  ['10', '10 s'],
  ['60', '1 min'],
  ['', 'any'],
];
const KINDS = {
  all: 'any',
  tables: 'several tables',
  natural: 'natural groups',
  privacy: 'noisy counts',
  images: 'of images',
};
const CHOSEN = 3;

function chooser(view, blocks) {
  const {found, state} = view;
  const sizes = list(found.bags).map(String);
  const size = sizes.includes(state.size) ? state.size : '';
  const pick = (label, key, options, current) =>
    options.length < 2
      ? null
      : h(
          'div',
          {class: 'field'},
          h('span', {id: `choose-${key}`}, label),
          h(
            'div',
            {class: 'seg', role: 'group', 'aria-labelledby': `choose-${key}`},
            options.map(([value, text]) =>
              h(
                'button',
                {
                  type: 'button',
                  'aria-pressed': String(value === current),
                  'data-key': `choose-${key}-${value}`,
                  click: () => change({[key]: value}),
                },
                text,
              ),
            ),
          ),
        );
  const best = chosen(view, size);
  return h(
    'section',
    {class: 'card chooser'},
    h('h3', null, 'Which method for my data?'),
    h(
      'div',
      {class: 'questions'},
      pick(
        'Bags',
        'block',
        blocks.map((block) => [block, KINDS[block] || block]),
        state.block,
      ),
      pick('Rows in a bag', 'size', [['', 'any'], ...sizes.map((bag) => [bag, bagShort(bag)])], size),
      pick('Seconds for a fit', 'budget', BUDGETS, state.budget),
    ),
    best.length
      ? h(
          'ol',
          null,
          best.map((c) =>
            h(
              'li',
              {'data-m': styleOf(c.method).id},
              h('p', null, glyph(styleOf(c.method)), methodLink(c.method)),
              h('p', {class: 'note'}, c.why),
              h('p', {class: 'note'}, str(aboutMethod(c.method).summary)),
            ),
          ),
        )
      : h('p', {class: 'none'}, 'No ranked method is that fast.'),
  );
}

/** The methods with the best mean rank at a bag size, among those whose median fit takes no more than the budget. */
function chosen(view, size) {
  const {found, all, state} = view;
  const at = list(found.bags).map(String).indexOf(size);
  const budget = state.budget === '' ? Infinity : Number(state.budget);
  const rankOf = (r) => (at < 0 ? num(r.rank) : num(list(r.bags)[at]));
  const rivals = all.filter((r) => rankOf(r) !== null);
  const affordable = rivals.filter((r) => num(r.seconds) !== null && r.seconds <= budget);
  const sources = at < 0 ? num(found.sources) : num(list(found.bag_sources)[at]);
  return affordable
    .sort(by(rankOf))
    .slice(0, CHOSEN)
    .map((r) => {
      const ahead = rivals.filter((other) => rankOf(other) < rankOf(r) && !affordable.includes(other)).length;
      const why = [
        `mean rank ${fixed(rankOf(r), 1)} of ${rivals.length}${at < 0 ? '' : ` at ${bagShort(size)}${size === '0' ? '' : ' rows'}`}`,
        sources ? plural(sources, 'source') : '',
        `${amount(r.seconds)} s a fit`,
        ahead ? `${plural(ahead, 'better one')} slower` : '',
      ];
      return {method: str(r.method), why: why.filter(Boolean).join(' · ')};
    });
}
