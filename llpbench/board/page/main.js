// Wiring: one state, one render. The state lives in the address; every change goes through `change`.

const board = dict(unpack(JSON.parse($('board').textContent)));
const styles = methodStyles(board);
let state = readState(location.hash, board);

const actions = {styles, change, open, close, copy};

function change(next) {
  state = {...state, ...next};
  // What depends on the dataset is checked again by reading the address we are about to write.
  const address = writeState(state, board);
  state = readState(address, board);
  history.replaceState(null, '', address || location.pathname + location.search);
  if (Object.keys(next).every((key) => ['cell', 'method', 'data'].includes(key))) renderPopup(viewOf(board, state));
  else render();
}

function open(method, bag) {
  change({cell: {method, bag}, method: '', data: ''});
}
function close() {
  $('detail').close();
}

// -- rendering --------------------------------------------------------------------------------------------------------

function render() {
  const view = viewOf(board, state);
  keepPlace(() => {
    renderTabs();
    renderControls(view);
    $('panel').replaceChildren(
      ...(state.overall ? overallPanel(overallView(board, state)).filter(Boolean) : panel(view)),
    );
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

function mainWidth() {
  const main = $('main');
  const style = getComputedStyle(main);
  return Math.max(280, main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
}

document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  $('main').focus();
});
addEventListener('hashchange', () => {
  state = readState(location.hash, board);
  render();
});
let waiting = 0;
addEventListener('resize', () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    if (mainWidth() !== drawnWidth) render();
  }, 120);
});
renderFoot();
render();
