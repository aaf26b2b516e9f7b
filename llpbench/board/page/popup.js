// Opening and closing the panel of a cell, a method or a dataset, and copying what it holds.

let shown = []; // what focus may return to

function popupContent(view) {
  if (state.cell) return renderDetail(view, state.cell, styles, actions);
  if (state.method) return methodPanel(state.method);
  return state.data ? datasetPanel(state.data) : null;
}

function renderPopup(view) {
  const dialog = $('detail');
  const content = popupContent(view);
  if (!content) {
    if (dialog.open) dialog.close();
    return;
  }
  const key = dialog.open && document.activeElement && document.activeElement.dataset.key;
  const {cell, method, data} = state;
  shown = cell ? [`cell-${cell.bag}-${cell.method}`, 'bound'] : method ? [`about-${method}`] : [`data-more-${data}`];
  dialog.replaceChildren(...content.filter(Boolean));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  const again = key && [...dialog.querySelectorAll('[data-key]')].find((e) => e.dataset.key === key && !e.disabled);
  (again || $('detail-title')).focus();
}

$('detail').addEventListener('close', () => {
  if ($('detail').open) return; // the event comes late, and another cell may be open by then
  if (state.cell || state.method || state.data) change({cell: null, method: '', data: ''});
  const target = shown
    .map((key) => [...document.querySelectorAll('[data-key]')].find((e) => e.dataset.key === key))
    .find(Boolean);
  shown = [];
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
  $('live').textContent = done ? 'Copied' : 'Selected';
}
