// The block of a publication's protocol: the same methods tuned with labels, as published, tuned without, as they are.

/** A card with one table for each setting in which parameters were searched; null where none were. */
function protocolBlock(view) {
  const tables = list(view.dataset.protocol).map(dict);
  if (!tables.length) return null;
  return h(
    'section',
    {class: 'card protocol'},
    h('h3', null, 'Tuned with labels, as published, tuned without labels'),
    h(
      'p',
      {class: 'note'},
      'Publications tune and select with labels of held-out rows, which are not available in practice. Compare columns with labels only with each other, and likewise columns without. All columns except the published one use the same seeds.',
    ),
    tables.map(protocolTable),
  );
}

function protocolTable(table) {
  const mark = (text, kind) =>
    kind === 'best' ? h('b', null, text) : kind === 'second' ? h('u', null, text) : text || '–';
  return h(
    'div',
    {class: 'scroll'},
    h(
      'table',
      {class: 'small'},
      h('caption', null, name(table.title)),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          h('th', {scope: 'col'}, 'method'),
          list(table.columns).map((c) => h('th', {scope: 'col'}, name(c))),
        ),
      ),
      h(
        'tbody',
        null,
        list(table.lines)
          .map(dict)
          .map((line) =>
            h(
              'tr',
              null,
              h('th', {scope: 'row'}, name(line.method)),
              list(line.texts).map((text, i) => h('td', null, mark(str(text), str(list(line.marks)[i])))),
            ),
          ),
      ),
    ),
    list(table.notes).map((note) => h('p', {class: 'note'}, name(note))),
  );
}
