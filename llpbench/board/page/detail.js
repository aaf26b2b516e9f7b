// The panel of one cell: everything behind a number, and the command that makes it again.

function renderDetail(view, cellAt, styles, actions) {
  const row = list(view.dataset.rows).find((r) => str(r.method) === cellAt.method);
  const noise = row && row.oracle ? Object.keys(dict(row.cells))[0] : view.noise;
  const cell = row ? cellOf(row, noise, cellAt.bag) : dict();
  if (!row || !own(dict(row.cells)[noise], cellAt.bag)) return null;
  const method = str(row.method);
  const status = str(cell.status || 'missing');
  const bags = row.oracle ? [cellAt.bag] : view.bags;
  const at = bags.indexOf(cellAt.bag);
  const go = (step, label, arrow) =>
    h(
      'button',
      {
        type: 'button',
        class: 'ghost',
        disabled: !bags[at + step],
        'data-key': `go-${step}`,
        'aria-label': bags[at + step] ? `${label} bag size, ${bags[at + step]}` : `${label} bag size: none`,
        click: () => actions.open(method, bags[at + step]),
      },
      arrow,
    );
  const where = row.oracle
    ? `${labelOf(view.dataset)}${view.bagBounds.length ? ` · ${bagName(view.dataset, cellAt.bag)}` : ''} · bound, trained on labels`
    : `${labelOf(view.dataset)} · ${bagName(view.dataset, cellAt.bag)} · noise ${noise}`;
  return [
    h(
      'header',
      null,
      h(
        'div',
        null,
        h('h2', {id: 'detail-title', tabindex: '-1'}, glyph(styles.get(method)), methodLink(method)),
        h('p', {class: 'note'}, where),
        row.summary ? h('p', {class: 'summary'}, str(row.summary)) : null,
      ),
      h(
        'div',
        {class: 'go'},
        row.oracle ? null : [go(-1, 'Previous', '←'), go(1, 'Next', '→')],
        h(
          'button',
          {type: 'button', class: 'ghost', 'aria-label': 'Close', 'data-key': 'close', click: actions.close},
          '✕',
        ),
      ),
    ),
    status === 'ok'
      ? null
      : h('p', {class: 'state'}, h('b', null, status), ': ', str(cell.reason) || statusWords(status)),
    scoreSection(view, row, cell, cellAt.bag),
    paperSection(view, cell),
    timeSection(cell),
    pairs(
      'Pseudo-labels',
      Object.entries(dict(cell.pseudo)).map(([stage, v]) => [stage, num(v) === null ? '–' : `${fixed(v)} AUROC %`]),
    ),
    pairs(
      'Parameters',
      Object.entries(dict(cell.params)).map(([key, v]) => [key, str(v)]),
      true,
    ),
    machineSection(view, cell),
    pairs(
      'Provenance',
      [
        ...list(cell.seed_ids).map((id, i) => [
          num(list(cell.seeds)[i]) === null ? `result ${i + 1}` : `seed ${cell.seeds[i]}`,
          `${str(id)}${list(cell.verified).includes(id) ? ' ✓ reproduced' : ''}`,
        ]),
        ...(row.origin ? [['method from', str(row.origin)]] : []),
        ...(row.unreleased ? [['code', 'unreleased']] : []),
      ],
      true,
    ),
    commandSection(cell, actions),
  ];
}

function section(title, ...children) {
  return h('section', null, h('h3', null, title), ...children);
}

function pairs(title, entries, mono = false) {
  return entries.length
    ? section(
        title,
        h(
          'dl',
          {class: mono ? 'mono' : ''},
          entries.map(([key, value]) => h('div', null, h('dt', null, name(key)), h('dd', null, name(value)))),
        ),
      )
    : null;
}

function scoreSection(view, row, cell, bag) {
  const rules = view.rules.filter((rule) => num(view.score(cell, rule).mean) !== null);
  if (!rules.length) return null;
  const domain = valueDomain(
    rules.flatMap((rule) => [
      ...list(view.score(cell, rule).values),
      num(view.score(cell, rule).mean),
      num(view.boundOf(rule, bag).mean),
    ]),
    view.percent,
  );
  return section(
    `${capital(view.metric)}${view.unit}`,
    rules.map((rule) => {
      const score = view.score(cell, rule);
      const values = list(score.values).filter((v) => num(v) !== null);
      const bound = row.oracle ? null : num(view.boundOf(rule, bag).mean);
      const mark = score.best ? 'best' : score.second ? 'second' : '';
      const judged =
        score.separated === true
          ? score.best
            ? 'separated from the second'
            : 'separated from the best'
          : score.separated === false
            ? score.best
              ? 'not separated from the second'
              : 'not separated from the best'
            : '';
      return h(
        'div',
        {class: `score${rule === view.rule ? ' current' : ''}`},
        h(
          'div',
          {class: 'line1'},
          h('span', {class: 'rule'}, 'rule ', h('b', null, rule)),
          h('span', {class: `big ${mark}`}, view.number(score.mean)),
          num(score.sd) === null ? null : h('span', {class: 'sd'}, `± ${view.number(score.sd)}`),
        ),
        strip(values, num(score.mean), bound, domain),
        h(
          'p',
          {class: 'note'},
          [
            `${plural(values.length || num(score.seeds) || 0, 'seed')}${values.length ? ': ' : ''}${seedValues(view, cell, values)}`,
            bound === null
              ? ''
              : `${view.number(Math.abs(bound - score.mean))} ${bound < score.mean ? 'above' : 'below'} the bound`,
            score.worth ? `its bags are worth ${str(score.worth)} labelled rows` : '',
            mark,
            judged,
            score.note ? seedsNote(view, score) : '',
            row.oracle || view.fair(row, view.noise, bag, rule) !== null
              ? ''
              : 'not compared: seeds are missing that most methods have',
          ]
            .filter(Boolean)
            .join(' · '),
        ),
      );
    }),
  );
}

/** The numbers of single seeds, each with its seed where all seeds have one. */
function seedValues(view, cell, values) {
  const seeds = list(cell.seeds);
  const named = seeds.length === values.length;
  return values.map((v, i) => `${view.number(v)}${named ? ` (seed ${str(seeds[i])})` : ''}`).join(', ');
}

/** Seeds on a line: dots for seeds, a tick for the mean, a dashed tick for the bound. */
function strip(values, mean, bound, domain) {
  const x = linear(domain, [6, 314]);
  return s(
    'svg',
    {class: 'strip', viewBox: '0 0 320 22', 'aria-hidden': 'true'},
    s('line', {class: 'grid', x1: 6, x2: 314, y1: 11, y2: 11}),
    plot(bound) === null ? null : s('line', {class: 'bound-tick', x1: x(bound), x2: x(bound), y1: 2, y2: 20}),
    plot(mean) === null ? null : s('line', {class: 'mean-tick', x1: x(mean), x2: x(mean), y1: 3, y2: 19}),
    values.filter((v) => plot(v) !== null).map((v) => s('circle', {class: 'seed', cx: x(v), cy: 11, r: 4})),
  );
}

function paperSection(view, cell) {
  const paper = dict(dict(cell.paper)[view.state.metric]);
  if (num(paper.mean) === null) return null;
  const rule = str(paper.rule);
  const ours = num(view.score(cell, rule).mean);
  return section(
    'The paper',
    h(
      'p',
      null,
      h('span', {class: 'big'}, view.number(paper.mean)),
      num(paper.sd) === null ? '' : ` ± ${view.number(paper.sd)}`,
      h(
        'span',
        {class: 'note'},
        [` rule ${rule}`, ours === null ? '' : `ours is ${signed(ours - paper.mean, view.digits)}`]
          .filter(Boolean)
          .join(' · '),
      ),
    ),
    paper.source || paper.note
      ? h('p', {class: 'note'}, [str(paper.source), str(paper.note)].filter(Boolean).join(': '))
      : null,
  );
}

function timeSection(cell) {
  const fit = fitOf(cell);
  const parts = phasesOf(cell);
  if (fit === null && num(cell.memory_mb) === null) return null;
  const total = parts.reduce((sum, [, v]) => sum + v, 0);
  return section(
    'Time and memory',
    h(
      'dl',
      null,
      h('div', null, h('dt', null, 'one fit, mean over seeds'), h('dd', null, seconds(fit))),
      h('div', null, h('dt', null, 'peak memory'), h('dd', null, memory(cell.memory_mb))),
    ),
    parts.length
      ? h(
          'dl',
          {class: 'bars'},
          parts.map(([phase, v]) =>
            h(
              'div',
              null,
              h('dt', null, name(phase)),
              h(
                'dd',
                null,
                s(
                  'svg',
                  {class: 'share', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
                  s('rect', {width: Math.max(0.5, (100 * v) / total), height: 8}),
                ),
                h('span', null, seconds(v)),
              ),
            ),
          ),
        )
      : null,
  );
}

function machineSection(view, cell) {
  const key = str(cell.machine);
  if (!key) return null;
  return pairs('Machine', [['id', key], ...machinePairs(dict(view.board.machines)[key])]);
}

function machinePairs(machine) {
  return Object.entries(dict(machine))
    .filter(([, v]) => v !== null && v !== '')
    .map(([key, v]) => [
      key,
      key === 'ram' && num(v) !== null
        ? `${amount(v)} GB`
        : v && typeof v === 'object'
          ? Object.entries(v)
              .map(([k, w]) => `${k} ${str(w)}`)
              .join(', ')
          : str(v),
    ]);
}

function commandSection(cell, actions) {
  const command = str(cell.command);
  if (!command) return null;
  const code = h('code', null, command);
  const button = h(
    'button',
    {type: 'button', class: 'copy', 'data-key': 'copy', click: () => actions.copy(command, code, button)},
    'Copy',
  );
  return section('Reproduce it', h('div', {class: 'command'}, h('pre', {tabindex: '0'}, code), button));
}
