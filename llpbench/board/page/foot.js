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
          'For the same seed all methods get the same split, bags and noise, and never the label of a row. A number is the mean over seeds with the sample standard deviation, under the selection rule shown next to it. ' +
            'Best, second, ranks and verdicts use the seeds that the compared methods share. Compare seconds within one machine only. A cell without a number shows its status.',
        ),
      ),
      stateSection(about),
      machineList(),
    ),
  );
}

/** Pages of the documentation beside this one: pairs of an address and words. */
const guidesOf = (about) =>
  Object.entries(dict(about.files))
    .filter(([address]) => /^\.\.\/(docs\/)?[\w-]+\.(md|html)$/.test(address))
    .map(([address, words]) => [address, str(words)]);

/** A text in which the words of a guide lead to it. */
function withGuide(text, guides) {
  const [address, words] = guides.find(([, w]) => w && text.includes(w)) || [];
  if (!address) return text;
  const at = text.indexOf(words);
  return [text.slice(0, at), h('a', {href: address}, words), text.slice(at + words.length)];
}

/** The first part of the newest published suite of the board, as --suite takes it; '' without a suite. */
function publishedPart() {
  const plain = (word) => /^[\w.-]+$/.test(word);
  const [newest] = Object.entries(dict(board.suites))
    .map(([suite, about]) => [str(dict(about).state), suite, str(list(dict(about).parts)[0]).split(':')[0]])
    .filter(([status, suite, part]) => status.startsWith('published') && plain(suite) && plain(part))
    .sort(([a], [b]) => b.localeCompare(a));
  return newest ? newest.slice(1).join('/') : '';
}

/** Where a suite is published, its cells are the ones to run. */
function stepCommand(command) {
  const part = publishedPart();
  return part && command.startsWith('llpbench run ')
    ? `llpbench run --suite ${part} --methods mine --out results/mine`
    : command;
}

function addSection(about) {
  const steps = list(about.steps);
  const guides = guidesOf(about);
  return steps.length
    ? h(
        'section',
        {class: 'wide'},
        h('h2', null, 'Add your method in three commands'),
        h(
          'ol',
          {class: 'steps'},
          steps.map(([what, command], i) =>
            h('li', null, withGuide(str(what), guides), commandBox(stepCommand(str(command)), `step-${i}`)),
          ),
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
        h('p', null, 'Cite the papers of the methods and datasets too; their panels list them.'),
      )
    : '';
}

function wordSection(about) {
  const words = Object.entries(dict(about.words));
  return words.length
    ? h(
        'section',
        {class: 'wide'},
        h('h2', {id: 'words'}, 'Glossary'),
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
  const guides = guidesOf(about);
  const files = Object.entries(dict(about.files)).filter(([file]) => !guides.some(([address]) => address === file));
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
    guides.length || links.length
      ? h(
          'p',
          {class: 'links'},
          guides.map(([address, words]) => h('span', null, h('a', {href: address}, capital(words)))),
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
