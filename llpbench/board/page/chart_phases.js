// Where the seconds of a fit go.

function phasesOf(cell) {
  const fit = fitOf(cell);
  const parts = Object.entries(dict(dict(cell.seconds).phases))
    .map(([phase, v]) => [phase, plot(v)])
    .filter(([, v]) => v !== null && v > 0);
  const rest = plot(fit) === null ? 0 : fit - parts.reduce((sum, [, v]) => sum + v, 0);
  return rest > 0.01 * (fit || 0) ? [...parts, ['other', rest]] : parts;
}

const TINTS = 8;

/** The look of a phase: one of the colours, and from the second turn through them on lines across it. */
function phaseLook(phases, phase) {
  const place = phases.indexOf(phase);
  return phase === 'other' ? {tint: 'px', turn: 0} : {tint: `p${place % TINTS}`, turn: Math.floor(place / TINTS)};
}

/** The lines of a turn; each turn has other ones. */
function hatch(turn) {
  const gap = 5 + 3 * Math.floor((turn - 1) / 4);
  return s(
    'pattern',
    {
      id: `hatch-${turn}`,
      width: gap,
      height: gap,
      patternUnits: 'userSpaceOnUse',
      patternTransform: `rotate(${[45, -45, 90, 0][(turn - 1) % 4]})`,
    },
    s('rect', {class: 'hatch', width: 2, height: gap}),
  );
}

/** A box that looks like a phase; `props` are of the box that is pointed at. */
const phaseBox = ({tint, turn}, place, props) => [
  s('rect', {...place, ...props, class: `phase ${tint}`}),
  turn ? s('rect', {...place, class: 'over', fill: `url(#hatch-${turn})`}) : null,
];

function phaseChart(view, styles, width, actions) {
  const {noise, state} = view;
  const bag = state.bag;
  const items = view.rows
    .map((r) => {
      const cell = cellOf(r.row, noise, bag);
      const parts = phasesOf(cell);
      return {...r, parts, style: styles.get(r.method), total: parts.reduce((sum, [, v]) => sum + v, 0)};
    })
    .filter((r) => r.total > 0 && r.total < 1e9)
    .sort(by((r) => r.total));
  const phases = [...new Set(items.flatMap((r) => r.parts.map(([phase]) => phase)))].sort(
    by((phase) => phase === 'other'),
  );
  const turns = Math.max(0, ...phases.map((phase) => phaseLook(phases, phase).turn));
  const step = 26;
  const height = 12 + step * items.length;
  const left = Math.min(130, width * 0.3);
  const right = width - 66;
  const most = Math.max(...items.map((r) => r.total), 0);
  const bar = (r, i) => {
    const top = 8 + step * i;
    let x = left;
    return s(
      'g',
      {'data-m': r.style.id},
      s(
        'text',
        {x: left - 10, y: top + 14, 'text-anchor': 'end'},
        clip(r.method, Math.max(8, Math.floor((left - 14) / 6.4))),
      ),
      r.parts.map(([phase, v]) => {
        const w = (v / (state.share ? r.total : most)) * (right - left);
        const piece = phaseBox(
          phaseLook(phases, phase),
          {x, y: top, width: Math.max(w - 1, 0.6), height: 18, rx: 1.5},
          spot(r.style, `${r.method} · ${phase} ${seconds(v)} (${fixed((100 * v) / r.total, 0)} %)`, r.method, bag),
        );
        x += w;
        return piece;
      }),
      s(
        'text',
        {class: 'value', x: state.share ? width - 4 : x + 7, y: top + 14, 'text-anchor': state.share ? 'end' : 'start'},
        seconds(r.total),
      ),
    );
  };
  const scale = h(
    'div',
    {class: 'seg mini', role: 'group', 'aria-label': 'Scale of the bars'},
    [
      [false, 'seconds'],
      [true, 'share'],
    ].map(([share, label]) =>
      h(
        'button',
        {
          type: 'button',
          'aria-pressed': String(state.share === share),
          'data-key': `share-${share}`,
          click: () => actions.change({share}),
        },
        label,
      ),
    ),
  );
  return figure({
    kind: 'phases',
    width,
    height,
    title: `Seconds by phase, ${bagSize(view.dataset, bag)}`,
    note: 'Seconds of one fit by the phases that the method reports, without loading data and scoring.',
    describe: `Bars for ${plural(items.length, 'method')}, cut into phases ${phases.join(', ')}.`,
    tools: h(
      'div',
      {class: 'tools'},
      scale,
      h(
        'ul',
        {class: 'key'},
        phases.map((phase) =>
          h(
            'li',
            null,
            s(
              'svg',
              {class: 'swatch', width: 14, height: 14, 'aria-hidden': 'true'},
              phaseBox(phaseLook(phases, phase), {width: 14, height: 14, rx: 3}),
            ),
            name(clip(phase, 24)),
          ),
        ),
      ),
    ),
    empty: items.length ? null : 'No times here.',
    draw: [
      s(
        'defs',
        null,
        Array.from({length: turns}, (_, i) => hatch(i + 1)),
      ),
      items.map(bar),
    ],
    columns: ['method', 'seconds', ...phases],
    rows: items.map((r) => [
      r.method,
      amount(r.total),
      ...phases.map((phase) => {
        const p = r.parts.find(([n]) => n === phase);
        return p ? amount(p[1]) : '–';
      }),
    ]),
  });
}
