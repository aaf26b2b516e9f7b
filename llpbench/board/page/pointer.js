// Bringing a method forward, and notes by the pointer.

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
  if (next !== hovered) {
    hovered = next;
    lift();
  }
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
$('panel').addEventListener('pointerleave', () => {
  hovered = null;
  $('tip').hidden = true;
  lift();
});
$('panel').addEventListener('focusin', (e) => {
  const m = e.target.closest('.chip, tr[data-m]');
  hovered = m ? m.dataset.m : null;
  lift();
});
$('panel').addEventListener('focusout', () => {
  hovered = null;
  lift();
});
$('panel').addEventListener('click', (event) => {
  const mark = event.target.closest('[data-open]');
  const cell = mark && readCell(mark.dataset.open);
  if (cell) open(cell.method, cell.bag);
});
