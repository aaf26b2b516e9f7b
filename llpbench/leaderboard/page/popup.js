// Opening and closing the panel of one cell, and copying its command.

let shown = null; // the cell the panel shows; where focus returns to

function renderPopup(view) {
  const dialog = $('detail');
  const content = state.cell && renderDetail(view, state.cell, styles, actions);
  if (!content) {
    if (dialog.open) dialog.close();
    return;
  }
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
  const target = keys
    .map((key) => [...document.querySelectorAll('[data-key]')].find((e) => e.dataset.key === key))
    .find(Boolean);
  shown = null;
  if (!target) return;
  if (target.classList.contains('cell')) makeStop(target);
  target.focus({preventScroll: true});
});
$('detail').addEventListener('click', (event) => {
  if (event.target === $('detail')) $('detail').close();
});

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
