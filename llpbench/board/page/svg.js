// Parts that charts share: markers, scales, axes, labels that keep apart, and the frame with its table of data.

const polygon = (n, r, turn = -Math.PI / 2) =>
  Array.from({length: n}, (_, i) => {
    const a = turn + (2 * Math.PI * i) / n;
    return `${(r * Math.cos(a)).toFixed(2)},${(r * Math.sin(a)).toFixed(2)}`;
  }).join('L');

/** The outline of a marker of size r around the origin. */
function outline(shape, r) {
  const q = r * 0.88;
  const t = r / 2.6;
  return [
    () => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
    () => `M${-q},${-q}H${q}V${q}H${-q}Z`,
    () => `M${polygon(3, r * 1.22)}Z`,
    () => `M${polygon(4, r * 1.25)}Z`,
    () => `M${polygon(3, r * 1.22, Math.PI / 2)}Z`,
    () => `M${-t},${-r}H${t}V${-t}H${r}V${t}H${t}V${r}H${-t}V${t}H${-r}V${-t}H${-t}Z`,
    () => `M${polygon(5, r * 1.1)}Z`,
    () =>
      `M${Array.from({length: 10}, (_, i) => {
        const a = -Math.PI / 2 + (Math.PI * i) / 5;
        const size = i % 2 ? r * 0.55 : r * 1.35;
        return `${(size * Math.cos(a)).toFixed(2)},${(size * Math.sin(a)).toFixed(2)}`;
      }).join('L')}Z`,
    () => `M${polygon(3, r * 1.22, 0)}Z`,
    () => `M${polygon(6, r * 1.08)}Z`,
  ][shape % SHAPES]();
}

const marker = (style, x, y, r, props) =>
  s('path', {
    d: outline(style.shape, r),
    transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`,
    ...props,
    class: `mark ${style.hue} ${(props && props.class) || ''}`,
  });

const glyph = (style) =>
  s(
    'svg',
    {class: 'glyph', width: 14, height: 14, viewBox: '-7 -7 14 14', 'aria-hidden': 'true'},
    marker(style, 0, 0, 4.6),
  );

function sparkline(values, range, style) {
  const [w, hgt] = [72, 20];
  const points = values.map((v, i) =>
    plot(v) === null || !range
      ? null
      : [
          3 + (i * (w - 6)) / Math.max(1, values.length - 1),
          hgt - 3 - ((v - range[0]) / (range[1] - range[0] || 1)) * (hgt - 6),
        ],
  );
  const last = points.filter(Boolean).pop();
  return s(
    'svg',
    {class: 'sparkline', width: w, height: hgt, viewBox: `0 0 ${w} ${hgt}`, 'aria-hidden': 'true'},
    s('path', {class: `line ${style.hue}`, d: pathOf(points)}),
    last ? s('circle', {class: `mark ${style.hue}`, cx: last[0], cy: last[1], r: 2}) : null,
  );
}

/** A line through points; null breaks it. */
function pathOf(points) {
  let pen = 'M';
  return points
    .map((p) => {
      if (!p) {
        pen = 'M';
        return '';
      }
      const piece = `${pen}${p[0].toFixed(1)},${p[1].toFixed(1)}`;
      pen = 'L';
      return piece;
    })
    .join('');
}

let figures = 0; // numbers for ids

// -- scales -----------------------------------------------------------------------------------------------------------

const linear =
  ([a, b], [from, to]) =>
  (v) =>
    b === a ? (from + to) / 2 : from + ((v - a) / (b - a)) * (to - from);
const log = ([a, b], range) => {
  const f = linear([Math.log(a), Math.log(b)], range);
  return (v) => f(Math.log(v));
};

/** About n round numbers inside a range. */
function ticks([a, b], n) {
  const rough = (b - a) / n || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough) * power;
  const out = [];
  for (let v = Math.ceil(a / step); v * step <= b + step * 1e-9 && out.length < 50; v++)
    out.push(Number((v * step).toPrecision(12)));
  return out;
}

/** A value axis that holds all numbers, with air, and never leaves what a share can be. */
function valueDomain(values, percent) {
  const found = values.filter((v) => plot(v) !== null);
  if (!found.length) return percent ? [50, 100] : [0, 1];
  let [a, b] = [Math.min(...found), Math.max(...found)];
  const air = Math.max((b - a) * 0.06, percent ? 0.5 : Math.abs(b) * 0.01 || 0.1);
  [a, b] = [a - air, b + air];
  if (!percent) return [Math.min(...found) >= 0 ? Math.max(0, a) : a, b];
  return [Math.max(0, Math.min(a, 99)), Math.min(100, Math.max(b, 1))];
}

/**
 * The axis of a chart of methods: what is far worse than most must not flatten what the chart is about. Controls get part
 * of the axis. A metric without an end, such as a loss, is cut where values lie 1.5 times the middle half's width apart
 * from it.
 */
function methodDomain(found, controls, {percent, lowIsBest}) {
  const methods = withoutWorst(found, {percent, lowIsBest});
  const range = extent(methods.filter((v) => num(v) !== null));
  const far = extent(controls.filter((v) => num(v) !== null));
  if (!range || !far) return valueDomain([...methods, ...controls], percent);
  const air = Math.max((range[1] - range[0]) * 0.15, percent ? 1 : 0);
  const near = far.map((v) => Math.max(range[0] - air, Math.min(range[1] + air, v)));
  return valueDomain([...methods, ...near], percent);
}

function withoutWorst(values, {percent, lowIsBest}) {
  if (percent) return values;
  const sorted = values.filter((v) => num(v) !== null).sort((a, b) => a - b);
  const [low, high] = [0.25, 0.75].map((share) => sorted[Math.floor(share * (sorted.length - 1))]);
  const reach = 1.5 * (high - low);
  return sorted.filter((v) => (lowIsBest ? v <= high + reach : v >= low - reach));
}

/** Drawings cut to a box, for lines that leave it. */
function clipped(box, ...children) {
  const id = `clip-${++figures}`;
  return s(
    'g',
    null,
    s(
      'clipPath',
      {id},
      s('rect', {
        x: box.left - 12,
        y: box.top - 12,
        width: box.right - box.left + 24,
        height: box.bottom - box.top + 12,
      }),
    ),
    s('g', {'clip-path': `url(#${id})`}, ...children),
  );
}

/** Powers of ten (and 2, 5 when they are few) in a range. */
function logTicks([a, b]) {
  const out = [];
  for (let e = Math.floor(Math.log10(a)); e <= Math.ceil(Math.log10(b)); e++)
    out.push(...[1, 2, 5].map((m) => m * 10 ** e));
  const inside = out.filter((v) => v >= a * 0.999 && v <= b * 1.001);
  return inside.length > 6 ? inside.filter((v) => Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6)) : inside;
}

const short = (v) => (v >= 1 ? String(Number(v.toPrecision(3))) : String(Number(v.toPrecision(1))));

/** Keep labels apart: sorted by wanted y, pushed down, then back up from the bottom. */
function spread(labels, gap, top, bottom) {
  const sorted = [...labels].sort(by((l) => l.y));
  let last = top - gap;
  for (const label of sorted) {
    label.at = Math.max(label.y, last + gap);
    last = label.at;
  }
  let next = bottom + gap;
  for (const label of sorted.reverse()) {
    label.at = Math.min(label.at, next - gap);
    next = label.at;
  }
  return labels;
}

// -- axes and frame ---------------------------------------------------------------------------------------------------

function yAxis(scale, values, left, right) {
  const step = values.length > 1 ? values[1] - values[0] : 1;
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  return s(
    'g',
    {class: 'axis', 'aria-hidden': 'true'},
    values.map((v) => [
      s('line', {class: 'grid', x1: left, x2: right, y1: scale(v), y2: scale(v)}),
      s('text', {x: left - 8, y: scale(v) + 4, 'text-anchor': 'end'}, v.toFixed(digits)),
    ]),
  );
}

/** Ticks with labels; a label that would touch the one before it is left out, the last one never. */
function xAxis(scale, values, y, write = String) {
  const width = (v) => write(v).length * 7 + 6;
  const touch = (a, b) => Math.abs(scale(b) - scale(a)) < (width(a) + width(b)) / 2;
  const shown = [];
  const last = values[values.length - 1];
  for (const v of values) {
    if (v !== last && ((shown.length && touch(shown[shown.length - 1], v)) || touch(v, last))) continue;
    shown.push(v);
  }
  return s(
    'g',
    {class: 'axis', 'aria-hidden': 'true'},
    values.map((v) => [
      s('line', {class: 'tick', x1: scale(v), x2: scale(v), y1: y, y2: y + 4}),
      shown.includes(v) ? s('text', {x: scale(v), y: y + 17, 'text-anchor': 'middle'}, write(v)) : null,
    ]),
  );
}

const axisTitle = (x, y, text, anchor = 'middle') =>
  s('text', {class: 'axis-title', x, y, 'text-anchor': anchor}, text);

/** A figure: heading, tools, the drawing (named and described for those who do not see it) and its data as a table. */
function figure({kind, title, note, width, height, describe, draw, columns, rows, tools, empty}) {
  const id = `figure-${++figures}`;
  const drawing = empty
    ? h('p', {class: 'none'}, empty)
    : s(
        'svg',
        {
          class: 'plot',
          width,
          height,
          viewBox: `0 0 ${width} ${height}`,
          role: 'img',
          'aria-labelledby': `${id}-title ${id}-desc`,
        },
        s('title', {id: `${id}-title`}, title),
        s('desc', {id: `${id}-desc`}, describe),
        draw,
      );
  const data = empty
    ? null
    : h(
        'details',
        {class: 'data', 'data-keep': kind},
        h('summary', {'data-key': `data-${kind}`}, 'Data of this chart'),
        h(
          'div',
          {class: 'scroll', role: 'region', 'aria-label': `${title}: data`, tabindex: '0'},
          h(
            'table',
            {class: 'small'},
            h('caption', {class: 'sr'}, title),
            h(
              'thead',
              null,
              h(
                'tr',
                null,
                columns.map((c) => h('th', {scope: 'col'}, c)),
              ),
            ),
            h(
              'tbody',
              null,
              rows.map(([first, ...rest]) =>
                h(
                  'tr',
                  null,
                  h('th', {scope: 'row'}, name(first)),
                  rest.map((v) => h('td', null, v)),
                ),
              ),
            ),
          ),
        ),
      );
  return h(
    'figure',
    {class: `card ${kind}`},
    h('figcaption', null, h('h3', null, title), note ? h('p', {class: 'note'}, note) : null, tools || null),
    drawing,
    data,
  );
}

/** What hovering and clicking a mark does: a note by the pointer, and the detail of its cell. */
const spot = (style, tip, method, bag) => ({
  'data-m': style.id,
  'data-tip': tip,
  'data-open': method === undefined ? null : `${bag}@${method}`,
});
