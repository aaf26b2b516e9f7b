// Small tools: unpacking the data, writing numbers, building nodes. Text from the board only ever becomes text nodes
// and attribute values; nothing here, or anywhere in these scripts, parses markup.

/** The inverse of pack.py. Objects have no prototype, so a key like "__proto__" is a key like any other. */
function unpack({shapes, pool, root}) {
  const known = [];
  const value = (v) => (typeof v === 'string' ? text(v) : Array.isArray(v) ? node(v) : v);
  const text = (s) => (s[0] !== '~' ? s : s[1] === '~' ? s.slice(1) : pooled(parseInt(s.slice(1), 36)));
  const pooled = (i) => (i in known ? known[i] : (known[i] = value(pool[i])));
  function node([tag, ...items]) {
    if (tag === -2) return items.map(value).join('');
    if (tag === -1) return items.map(value);
    const out = Object.create(null);
    let i = 0;
    for (const key of shapes[tag]) {
      if (Array.isArray(key)) out[key[0]] = key[1];
      else out[key] = value(items[i++]);
    }
    return out;
  }
  return value(root);
}

// -- values, whatever they are ----------------------------------------------------------------------------------------

const num = (x) => (typeof x === 'number' && Number.isFinite(x) ? x : null);
/** A number that can be drawn. */
const plot = (x) => (num(x) !== null && Math.abs(x) < 1e9 ? x : null);
const str = (x) => (x === null || x === undefined ? '' : typeof x === 'object' ? JSON.stringify(x) : String(x));
const list = (x) => (Array.isArray(x) ? x : []);
const dict = (x) => (x && typeof x === 'object' && !Array.isArray(x) ? x : Object.create(null));
const by = (key) => (a, b) => key(a) - key(b);
const clip = (text, n) => {
  const c = [...text];
  return c.length > n ? c.slice(0, n - 1).join('') + '…' : text;
};

function fixed(x, digits = 2) {
  if (num(x) === null) return '–';
  if (Math.abs(x) >= 1e6) return x.toExponential(1);
  const cut = x * 10 ** digits;
  const tie = Math.abs(cut % 1) === 0.5 && Number.isInteger(x * 8); // to the even side, as in the printed tables
  return (tie ? (2 * Math.round(cut / 2)) / 10 ** digits : x).toFixed(digits).replace('-', '−');
}

const meanSd = (r, digits = 2) => fixed(r.mean, digits) + (num(r.sd) === null ? '' : ` (${fixed(r.sd, digits)})`);
const signed = (x, digits = 2) => (x > 0 ? '+' : '') + fixed(x, digits);

/** Three digits of a positive amount: 0.012, 1.23, 45.6, 789. */
function amount(x) {
  if (num(x) === null) return '–';
  if (Math.abs(x) >= 1e6) return x.toExponential(1);
  const size = Math.abs(x);
  return x.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

const seconds = (x) => (num(x) === null ? '–' : `${amount(x)} s`);
const memory = (mb) => (num(mb) === null ? '–' : mb >= 1024 ? `${amount(mb / 1024)} GB` : `${amount(mb)} MB`);
const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
const count = (n) => (num(n) === null ? '' : n.toLocaleString('en-US'));
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// -- nodes ------------------------------------------------------------------------------------------------------------

const SVG = 'http://www.w3.org/2000/svg';
const $ = (id) => document.getElementById(id);

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false && c !== ''));
  return element;
}

/** An HTML element: h('p', {class: 'note', click: handler}, 'text', child). */
const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
/** The same for SVG. */
const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);
/** A name from the board, kept from turning the text around it when it holds right-to-left characters. */
const name = (text) => h('bdi', null, str(text));
