// The foot of the page: how to read it, what words mean, how to cite it, what to take away, how to add a method.

function renderFoot() {
  const about = dict(board.about);
  $('foot').replaceChildren(
    h(
      'div',
      {class: 'foot'},
      addSection(about),
      citeSection(about),
      wordSection(about),
      h(
        'section',
        null,
        h('h2', null, 'How to read it'),
        h(
          'p',
          null,
          'All methods see the same split, bags and noise for the same seed, and never a label of a row. A number is the mean over seeds with the sample standard deviation; the selection rule that chose the model stands next to it. ' +
            'Best, second, ranks and verdicts use the seeds that the compared methods share. Compare seconds within one machine only. A cell without a number shows its status.',
        ),
      ),
      stateSection(about),
      machineList(),
    ),
  );
}

function addSection(about) {
  const steps = list(about.steps);
  return steps.length
    ? h(
        'section',
        {class: 'wide'},
        h('h2', null, 'Add your method in three commands'),
        h(
          'ol',
          {class: 'steps'},
          steps.map(([what, command], i) => h('li', null, str(what), commandBox(str(command), `step-${i}`))),
        ),
      )
    : '';
}

/** A command with a button that copies it. */
function commandBox(command, key) {
  const code = h('code', null, command);
  const button = h(
    'button',
    {type: 'button', class: 'copy', 'data-key': key, 'aria-label': 'Copy', click: () => copy(command, code, button)},
    'Copy',
  );
  return h('div', {class: 'command'}, h('pre', {tabindex: '0'}, code), button);
}

function citeSection(about) {
  return about.citation
    ? h(
        'section',
        {class: 'wide'},
        h('h2', null, 'Cite it'),
        commandBox(str(about.citation), 'cite'),
        h('p', null, 'Cite the papers of the methods and datasets too: their panels name them.'),
      )
    : '';
}

function wordSection(about) {
  const words = Object.entries(dict(about.words));
  return words.length
    ? h(
        'section',
        {class: 'wide'},
        h('h2', {id: 'words'}, 'Words'),
        h(
          'dl',
          {class: 'words'},
          words.map(([word, text]) => h('div', null, h('dt', null, word), h('dd', null, str(text)))),
        ),
      )
    : '';
}

function stateSection(about) {
  const built = str(board.built);
  const files = Object.entries(dict(about.files));
  const links = Object.entries(dict(about.links));
  const lines = (overalls(board).length ? [] : list(board.coverage)).map((c) => str(dict(c).text)).filter(Boolean);
  return h(
    'section',
    null,
    h('h2', null, 'Results'),
    h(
      'p',
      null,
      about.version ? ['llpbench ', name(about.version), '. '] : '',
      num(board.protocol) === null ? '' : `Protocol ${board.protocol}. `,
      built ? ['Newest result ', name(built), '. '] : '',
    ),
    lines.length
      ? h(
          'ul',
          null,
          lines.map((line) => h('li', null, name(line))),
        )
      : null,
    files.length
      ? h(
          'ul',
          {class: 'files'},
          files.map(([file, what]) =>
            h('li', null, /^[\w.-]+$/.test(file) ? h('a', {href: file}, file) : name(file), `: ${str(what)}`),
          ),
        )
      : null,
    links.length
      ? h(
          'p',
          {class: 'links'},
          links.map(([label, address]) => h('span', null, outward(address, str(label)))),
        )
      : null,
  );
}

function machineList() {
  const machines = Object.entries(dict(board.machines));
  if (!machines.length) return '';
  return h(
    'section',
    null,
    h('h2', null, plural(machines.length, 'machine')),
    h(
      'ul',
      null,
      machines.map(([key, m]) =>
        h(
          'li',
          null,
          name(key),
          ': ',
          name(
            machinePairs(m)
              .filter(([k]) => k !== 'versions')
              .map(([k, v]) => (k === 'cores' ? `${v} cores` : k === 'python' ? `Python ${v}` : v))
              .join(', '),
          ),
        ),
      ),
    ),
  );
}
