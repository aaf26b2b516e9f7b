// Wiring: one state, one render. The state lives in the address; every change goes through `change`.

const board = dict(unpack(JSON.parse($('board').textContent)));
const styles = methodStyles(board);
let state = readState(location.hash, board);
let drawnWidth = 0;

const actions = {styles, change, open, close, copy};

function change(next) {
  state = {...state, ...next};
  // What depends on the dataset is checked again by reading the address we are about to write.
  const address = writeState(state, board);
  state = readState(address, board);
  history.replaceState(null, '', address || location.pathname + location.search);
  if (Object.keys(next).join() === 'cell') renderPopup(viewOf(board, state));
  else render();
}

function open(method, bag) { change({cell: {method, bag}}); }
function close() { $('detail').close(); }

// -- rendering --------------------------------------------------------------------------------------------------------

function render() {
  const view = viewOf(board, state);
  keepPlace(() => {
    renderTabs();
    renderControls(view);
    $('panel').replaceChildren(...panel(view));
  });
  hovered = null;
  lift();
  renderPopup(view);
}

/** Render without taking focus, scroll positions or open data tables away. */
function keepPlace(draw) {
  const key = document.activeElement && document.activeElement.dataset.key;
  const opened = [...document.querySelectorAll('details[data-keep][open]')].map((d) => d.dataset.keep);
  const scroller = document.querySelector('#panel .scroll');
  const left = scroller ? scroller.scrollLeft : 0;
  draw();
  for (const d of document.querySelectorAll('details[data-keep]')) d.open = opened.includes(d.dataset.keep);
  const again = document.querySelector('#panel .scroll');
  if (again && left) again.scrollLeft = left;
  const target = key && [...document.querySelectorAll('[data-key]')].find((e) => e.dataset.key === key);
  if (target && target !== document.activeElement) {
    if (target.classList.contains('cell')) makeStop(target);
    target.focus({preventScroll: true});
  }
}

/** Make a cell the one tab stop of the table. */
function makeStop(target) {
  for (const cell of document.querySelectorAll('.cell[tabindex="0"]')) cell.tabIndex = -1;
  target.tabIndex = 0;
}

function renderTabs() {
  const datasets = list(board.datasets);
  $('tabs').replaceChildren(...datasets.map((d) => {
    const here = d.name === state.dataset;
    return h('button', {
      type: 'button', role: 'tab', 'aria-selected': String(here), 'aria-controls': 'panel', tabindex: here ? '0' : '-1',
      'data-key': `tab-${d.name}`, id: here ? 'tab-here' : null, click: () => change({dataset: d.name, cell: null}), title: d.title && d.title !== d.name ? str(d.title) : null,
    }, name(d.name));
  }));
  const here = $('tab-here');
  if (here) {
    $('panel').setAttribute('aria-labelledby', 'tab-here');
    const tabs = $('tabs');
    if (here.offsetLeft < tabs.scrollLeft || here.offsetLeft + here.offsetWidth > tabs.scrollLeft + tabs.clientWidth) tabs.scrollLeft = here.offsetLeft - 24;
  }
}

$('tabs').addEventListener('keydown', (event) => {
  const tabs = [...$('tabs').children];
  const at = tabs.indexOf(event.target.closest('[role=tab]'));
  const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1}[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  const next = tabs[(to + tabs.length) % tabs.length];
  next.focus();
  next.click();
});

function segmented(label, key, options, current, put) {
  return h('fieldset', {class: 'field'}, h('legend', null, label), h('div', {class: 'seg'}, options.map(([value, text, title]) => h('label', {title},
    h('input', {type: 'radio', name: key, value, checked: value === current, 'data-key': `${key}-${value}`, change: () => put(value)}), h('span', null, text)))));
}

function toggle(key, label, title) {
  return h('label', {class: 'check', title}, h('input', {type: 'checkbox', checked: state[key], 'data-key': `toggle-${key}`, change: (e) => change({[key]: e.target.checked})}), label);
}

const RULE_TITLES = {
  bags: 'Selected on held-back bags: what a user of LLP has',
  instances: 'Selected on labels of single validation rows: what the literature does',
};

function renderControls(view) {
  const {dataset} = view;
  const noises = list(dataset.noises);
  const noiseText = (noise) => {
    const epsilon = epsilonOf(dataset, noise);
    return epsilon === null || epsilon === Infinity || noise.includes(String(epsilon)) ? noise : `${noise} (ε ${short(epsilon)})`;
  };
  slots.rule.replaceChildren(segmented('Selection rule', 'rule', list(board.rules).map((r) => [r, r, RULE_TITLES[r]]), state.rule, (rule) => change({rule})));
  slots.noise.replaceChildren(...(noises.length > 1 ? [segmented('Noise', 'noise', noises.map((n) => [n, noiseText(str(n))]), state.noise, (noise) => change({noise}))] : []));
  slots.checks.replaceChildren(...[view.hasControls ? toggle('controls', 'controls', 'Show the controls') : null,
    view.hasPaper ? toggle('paper', 'paper’s values', 'Show what the paper reports under each cell') : null].filter(Boolean));
  if ($('filter').value !== state.filter) $('filter').value = state.filter;
}

// The filter is made once: a field that is replaced while someone types loses what an input method is composing.
const slots = {rule: h('div'), noise: h('div'), checks: h('div', {class: 'checks'})};
$('controls').append(slots.rule, slots.noise, h('div', {class: 'field grow'}, h('label', {for: 'filter'}, 'Filter methods'),
  h('input', {id: 'filter', type: 'search', placeholder: 'name or words of its summary', autocomplete: 'off', spellcheck: 'false', maxlength: 200,
    input: (e) => { change({filter: e.target.value}); announce(); }})), slots.checks);

function announce() {
  const view = viewOf(board, state);
  $('live').textContent = `${view.rows.length} of ${plural(view.all.length, 'method')} shown`;
}

function panel(view) {
  const {dataset} = view;
  if (!dataset.name) return [h('p', {class: 'none'}, 'No results have been published yet.')];
  const count = view.rows.length === view.all.length ? plural(view.all.length, 'method') : `${view.rows.length} of ${plural(view.all.length, 'method')}`;
  const heading = h('div', {class: 'heading'},
    h('div', null, h('h2', null, name(dataset.name)),
      dataset.title && dataset.title !== dataset.name ? h('p', {class: 'about'}, name(dataset.title)) : null,
      h('p', {class: 'note'}, [`${view.metric}${view.unit} on test rows`, 'mean (sd) over seeds', `rule ${view.rule}`, `noise ${view.noise}`, count].join(' · '))),
    boundBox(view));
  const legend = h('p', {class: 'legend'}, h('b', null, 'best'), h('u', null, 'second'),
    h('span', null, '≈ not separated from the best (for the best: from the second)'),
    view.rows.some((r) => view.bags.some((bag) => cellOf(r.row, view.noise, bag).status === 'partial')) ? h('span', null, '◌ some seeds are missing') : null,
    view.other ? h('span', null, h('span', {class: 'moved up'}, '▲'), h('span', {class: 'moved down'}, '▼'), ` places against rule ${view.other}`) : null,
    h('span', {class: 'keys'}, 'Open a cell for its parameters, seeds and command (arrow keys and Enter)'));
  const inner = mainWidth();
  const two = inner >= 900;
  const gap = 20;
  const pad = 34;
  const wide = Math.floor(two ? (inner - gap) * 0.58 : inner) - pad;
  const slim = two ? inner - gap - wide - pad - pad : inner - pad;
  drawnWidth = inner;
  const charts = [
    methodKey(view),
    h('div', {class: 'pair uneven'}, bagChart(view, styles, wide), claimList(view)),
    bagPicker(view),
    h('div', {class: 'pair uneven'}, costChart(view, styles, wide), ruleChart(view, styles, slim)),
    phaseChart(view, styles, inner - pad, actions),
    list(dataset.noises).length > 1 ? noiseChart(view, styles, inner - pad) : null,
  ];
  return [heading, renderTable(view, actions), legend, missingNotes(view), ...charts].filter(Boolean);
}

function mainWidth() {
  const main = $('main');
  const style = getComputedStyle(main);
  return Math.max(280, main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
}

function boundBox(view) {
  if (num(view.bound.mean) === null) return null;
  const row = view.bounds.find((r) => str(r.method) === str(view.bound.method)) || view.bounds[0];
  const cells = row ? Object.values(dict(row.cells)).flatMap((c) => Object.keys(dict(c))) : [];
  const label = [h('span', {class: 'what'}, 'Upper bound, trained on true labels'),
    h('span', {class: 'value'}, name(view.bound.method || (row && row.method) || 'supervised'), ' ', h('b', null, fixed(view.bound.mean)),
      num(view.bound.sd) === null ? '' : ` (${fixed(view.bound.sd)})`)];
  return cells.length ? h('button', {type: 'button', class: 'boundbox', 'aria-haspopup': 'dialog', title: str(view.bound.note) || null, 'data-key': 'bound', click: () => open(str(row.method), cells[0])}, label)
    : h('div', {class: 'boundbox'}, label);
}

/** The key of all charts: hover or focus to bring a method forward, press to keep it there. */
function methodKey(view) {
  return h('ul', {class: 'methods', 'aria-label': 'Methods: press to keep one in front'}, view.rows.map((r) => h('li', null,
    h('button', {type: 'button', class: 'chip', 'aria-pressed': String(pinned.has(r.method)), 'data-m': styles.get(r.method).id, 'data-key': `chip-${r.method}`,
      click: (e) => { pinned.has(r.method) ? pinned.delete(r.method) : pinned.add(r.method); e.currentTarget.setAttribute('aria-pressed', String(pinned.has(r.method))); lift(); }},
    glyph(styles.get(r.method)), name(r.method)))));
}

function bagPicker(view) {
  if (view.bags.length < 2) return null;
  return h('div', {class: 'picker'}, h('h3', null, 'At one bag size'),
    h('div', {class: 'seg', role: 'group', 'aria-label': 'Bag size of the charts below'}, view.bags.map((bag) => h('button', {
      type: 'button', 'aria-pressed': String(bag === state.bag), 'data-key': `bag-${bag}`, click: () => change({bag}),
    }, bag))));
}

function claimList(view) {
  const claims = list(view.dataset.claims).filter((c) => str(c.rule) === view.rule && str(c.noise || 'none') === view.noise);
  const bases = new Set(claims.map((c) => str(c.basis)));
  const item = (c) => h('li', {class: c.separated === true ? 'yes' : 'no'},
    h('span', {class: 'verdict'}, h('span', {class: 'bagname'}, `bag ${str(c.bag)}`), c.separated === true ? 'separated' : c.separated === false ? 'not separated' : 'not judged'),
    h('p', null, str(c.text) || `${str(c.best)} against ${str(c.second)}: ${fixed(c.difference)}`), interval(c), bases.size > 1 && c.basis ? h('p', {class: 'note'}, str(c.basis)) : null);
  return h('section', {class: 'card claims'}, h('h3', null, 'What the seeds can tell'),
    h('p', {class: 'note'}, `Is the best of a column separated from the second? The dot is the difference, the line its 95 % interval${bases.size === 1 && [...bases][0] ? ` over ${[...bases][0]}` : ''}.`),
    claims.length ? h('ul', {class: 'claim-list'}, claims.sort(by((c) => Number(c.bag))).map(item)) : h('p', {class: 'none'}, 'No comparison for this rule and noise.'));

  function interval(c) {
    const [low, high, d] = [plot(c.low), plot(c.high), plot(c.difference)];
    if (low === null || high === null || d === null) return null;
    const ends = claims.flatMap((o) => [plot(o.low) || 0, plot(o.high) || 0]);
    const x = linear([Math.min(0, ...ends), Math.max(0.1, ...ends)], [4, 236]);
    return s('svg', {class: 'interval', viewBox: '0 0 240 14', role: 'img', 'aria-label': `difference ${fixed(d)}, interval ${fixed(low)} to ${fixed(high)}`},
      s('line', {class: 'zero', x1: x(0), x2: x(0), y1: 0, y2: 14}), s('line', {class: 'range', x1: x(low), x2: x(high), y1: 7, y2: 7}), s('circle', {cx: x(d), cy: 7, r: 3.6}));
  }
}

function missingNotes(view) {
  const notes = new Map();
  for (const r of view.rows) {
    for (const bag of view.bags) {
      const cell = cellOf(r.row, view.noise, bag);
      if (str(cell.status || 'missing') === 'ok' || !cell.reason) continue;
      const key = `${r.method}: ${str(cell.status)}: ${str(cell.reason)}`;
      notes.set(key, [...(notes.get(key) || []), bag]);
    }
  }
  if (!notes.size) return null;
  return h('details', {class: 'data missing', 'data-keep': 'missing'}, h('summary', {'data-key': 'missing'}, `${plural(notes.size, 'note')} on cells without all numbers`),
    h('ul', null, [...notes].map(([text, bags]) => h('li', null, name(text), ` (bag ${bags.join(', ')})`))));
}

function renderFoot() {
  const machines = Object.entries(dict(board.machines));
  const missing = list(board.missing);
  const built = str(board.built);
  $('foot').replaceChildren(
    h('div', {class: 'foot'},
      h('section', null, h('h2', null, 'How to read it'),
        h('p', null, 'All methods see the same split, bags and noise for the same seed, and never a label of a row. A number is the mean over seeds with the sample standard deviation; the selection rule that chose the model stands next to it. '
          + 'Compare seconds within one machine only. A cell without a number shows its status.')),
      machines.length ? h('section', null, h('h2', null, plural(machines.length, 'machine')), h('ul', null, machines.map(([key, m]) => h('li', null, name(key), ': ',
        name(machinePairs(m).filter(([k]) => k !== 'versions').map(([k, v]) => (k === 'cores' ? `${v} cores` : k === 'python' ? `Python ${v}` : v)).join(', '))))) ) : '',
      h('section', null, h('h2', null, 'Results'), h('p', null, built ? ['Newest result ', name(built), '. '] : '', missing.length ? `${plural(missing.length, 'planned cell')} without a number.` : 'No planned cell is missing.'),
        missing.length ? h('details', null, h('summary', null, 'Which'), h('ul', {class: 'long'}, missing.slice(0, 400).map((m) => h('li', null, name(missingText(m)))),
          missing.length > 400 ? h('li', null, `and ${missing.length - 400} more`) : null)) : null)));
}

const missingText = (m) => (m && typeof m === 'object' ? [m.dataset, m.method, m.bag === undefined ? '' : `bag ${str(m.bag)}`, m.noise === 'none' ? '' : m.noise, m.status, m.reason].map(str).filter(Boolean).join(' · ') : str(m));

// -- the detail panel -------------------------------------------------------------------------------------------------

let shown = null; // the cell the panel shows; where focus returns to

function renderPopup(view) {
  const dialog = $('detail');
  const content = state.cell && renderDetail(view, state.cell, styles, actions);
  if (!content) { if (dialog.open) dialog.close(); return; }
  const key = dialog.open && document.activeElement && document.activeElement.dataset.key;
  shown = state.cell;
  dialog.replaceChildren(...content.filter(Boolean));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  const again = key && [...dialog.querySelectorAll('[data-key]')].find((e) => e.dataset.key === key && !e.disabled);
  (again || $('detail-title')).focus();
}

$('detail').addEventListener('close', () => {
  if ($('detail').open) return; // the event comes late, and another cell may be open by then
  if (state.cell) change({cell: null});
  const keys = shown ? [`cell-${shown.bag}-${shown.method}`, 'bound'] : [];
  const target = keys.map((key) => [...document.querySelectorAll('[data-key]')].find((e) => e.dataset.key === key)).find(Boolean);
  shown = null;
  if (!target) return;
  if (target.classList.contains('cell')) makeStop(target);
  target.focus({preventScroll: true});
});
$('detail').addEventListener('click', (event) => { if (event.target === $('detail')) $('detail').close(); });

async function copy(text, node, button) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    getSelection().selectAllChildren(node);
    done = document.execCommand('copy');
  }
  button.textContent = done ? 'Copied' : 'Select and copy';
  $('live').textContent = done ? 'Command copied' : 'Command selected';
}

// -- bringing a method forward, notes by the pointer ------------------------------------------------------------------

const pinned = new Set();
let hovered = null;

function lift() {
  const ids = new Set([...pinned].filter((m) => styles.has(m)).map((m) => String(styles.get(m).id)));
  if (hovered !== null) ids.add(hovered);
  $('panel').classList.toggle('lifted', ids.size > 0);
  for (const e of $('panel').querySelectorAll('[data-m]')) e.classList.toggle('hot', ids.has(e.dataset.m));
}

function point(event) {
  const mark = event.target.closest && event.target.closest('[data-m]');
  const next = mark ? mark.dataset.m : null;
  if (next !== hovered) { hovered = next; lift(); }
  const noted = event.target.closest && event.target.closest('[data-tip]');
  const tip = $('tip');
  tip.hidden = !noted;
  if (!noted) return;
  tip.textContent = noted.dataset.tip;
  const {clientX: x, clientY: y} = event;
  tip.style.left = `${Math.max(8, Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > window.innerHeight ? y - tip.offsetHeight - 12 : y + 18}px`;
}

$('panel').addEventListener('pointermove', point);
$('panel').addEventListener('pointerleave', () => { hovered = null; $('tip').hidden = true; lift(); });
$('panel').addEventListener('focusin', (e) => { const m = e.target.closest('.chip, tr[data-m]'); hovered = m ? m.dataset.m : null; lift(); });
$('panel').addEventListener('focusout', () => { hovered = null; lift(); });
$('panel').addEventListener('click', (event) => {
  const mark = event.target.closest('[data-open]');
  const cell = mark && readCell(mark.dataset.open);
  if (cell) open(cell.method, cell.bag);
});

// -- light and dark ---------------------------------------------------------------------------------------------------

const dark = matchMedia('(prefers-color-scheme: dark)');
function stored(write) {
  try { // storage may be forbidden for files
    if (write === undefined) return localStorage.getItem('llpbench-theme');
    localStorage.setItem('llpbench-theme', write);
  } catch { /* the choice then lasts as long as the page */ }
  return null;
}
function applyTheme(theme) {
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  const now = document.documentElement.dataset.theme || (dark.matches ? 'dark' : 'light');
  $('theme').textContent = now === 'dark' ? '☀ Light' : '☾ Dark';
  $('theme').setAttribute('aria-label', now === 'dark' ? 'Switch to light colours' : 'Switch to dark colours');
}
$('theme').addEventListener('click', () => {
  const now = document.documentElement.dataset.theme || (dark.matches ? 'dark' : 'light');
  const next = now === 'dark' ? 'light' : 'dark';
  applyTheme(next);
  stored(next);
});
dark.addEventListener('change', () => applyTheme());
applyTheme(stored());

document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); $('main').focus(); });
addEventListener('hashchange', () => { state = readState(location.hash, board); render(); });
let waiting = 0;
addEventListener('resize', () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (mainWidth() !== drawnWidth) render(); }, 120);
});
renderFoot();
render();
