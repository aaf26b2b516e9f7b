// Above the table: tabs of datasets, the metric, the rule, the noise, the filter.

/** A tab for all datasets together, and one for each dataset; those that differ in their bags or options share one. */
function tabsOf() {
  const first = overalls(board).length
    ? [{label: 'All', key: 'All', name: '', title: 'All datasets', here: state.overall}]
    : [];
  const bases = new Map(list(board.datasets).map((d) => [baseOf(d), datasetNamed(list(board.datasets), baseOf(d))]));
  const now = list(board.datasets).find((d) => d.name === state.dataset);
  return [
    ...first,
    ...[...bases].map(([base, d]) => ({
      label: capital(base),
      key: base,
      name: d.name,
      title: d.title,
      here: !!now && baseOf(now) === base,
    })),
  ];
}

function renderTabs() {
  $('tabs').replaceChildren(
    ...tabsOf().map((d) => {
      const {here} = d;
      return h(
        'button',
        {
          type: 'button',
          role: 'tab',
          'aria-selected': String(here),
          'aria-controls': 'panel',
          tabindex: here ? '0' : '-1',
          'data-key': `tab-${d.key}`,
          id: here ? 'tab-here' : null,
          click: () => change({dataset: d.name, cell: null}),
          title: d.title && d.title !== d.label ? str(d.title) : null,
        },
        name(d.label),
      );
    }),
  );
  const here = $('tab-here');
  if (here) {
    $('panel').setAttribute('aria-labelledby', 'tab-here');
    const tabs = $('tabs');
    if (here.offsetLeft < tabs.scrollLeft || here.offsetLeft + here.offsetWidth > tabs.scrollLeft + tabs.clientWidth)
      tabs.scrollLeft = here.offsetLeft - 24;
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
  return h(
    'fieldset',
    {class: 'field'},
    h('legend', null, label),
    h(
      'div',
      {class: 'seg'},
      options.map(([value, text, title]) =>
        h(
          'label',
          {title},
          h('input', {
            type: 'radio',
            name: key,
            value,
            checked: value === current,
            'data-key': `${key}-${value}`,
            change: () => put(value),
          }),
          h('span', null, text),
        ),
      ),
    ),
  );
}

function toggle(key, label, title) {
  return h(
    'label',
    {class: 'check', title},
    h('input', {
      type: 'checkbox',
      checked: state[key],
      'data-key': `toggle-${key}`,
      change: (e) => change({[key]: e.target.checked}),
    }),
    label,
  );
}

/** The datasets of a tab: the same rows with other options or other bags. */
function dataMenu() {
  const now = list(board.datasets).find((d) => d.name === state.dataset);
  const family = now ? familyOf(now) : [];
  if (family.length < 2) return [];
  return [
    h(
      'div',
      {class: 'field'},
      h('label', {for: 'data'}, 'Bags and options'),
      h(
        'select',
        {id: 'data', 'data-key': 'data', change: (e) => change({dataset: e.target.value, cell: null})},
        family.map((d) => h('option', {value: str(d.name), selected: d === now}, labelOf(d))),
      ),
    ),
  ];
}

function metricMenu(metrics) {
  const title = (metric) => str(metricOf(board, metric).title || metric);
  return h(
    'div',
    {class: 'field'},
    h('label', {for: 'metric'}, 'Metric'),
    h(
      'select',
      {id: 'metric', 'data-key': 'metric', change: (e) => chooseMetric(e.target.value)},
      metrics.map((m) => h('option', {value: m, selected: m === state.metric}, title(m))),
    ),
  );
}

/** Show another metric. A table sorted by a column keeps the best at the end where it was. */
function chooseMetric(metric) {
  const turned = state.sort.startsWith('bag-') && lowIsBest(board, metric) !== lowIsBest(board, state.metric);
  change({metric, down: turned ? !state.down : state.down});
}

function renderControls(view) {
  const {dataset} = view;
  const noises = list(dataset.noises);
  const noiseText = (noise) => {
    const epsilon = epsilonOf(dataset, noise);
    return epsilon === null || epsilon === Infinity || noise.includes(String(epsilon))
      ? noise
      : `${noise} (ε ${short(epsilon)})`;
  };
  const metrics = state.overall ? overallMetrics(board) : list(dataset.metrics).map(str);
  slots.data.replaceChildren(...dataMenu());
  slots.metric.replaceChildren(...(metrics.length > 1 ? [metricMenu(metrics)] : []));
  slots.rule.replaceChildren(
    segmented(
      'Selection rule',
      'rule',
      view.rules.map((r) => [r, r, ruleSentence(board, r)]),
      state.rule,
      (rule) => change({rule}),
    ),
  );
  slots.noise.replaceChildren(
    ...(noises.length > 1
      ? [
          segmented(
            'Noise',
            'noise',
            noises.map((n) => [n, noiseText(str(n))]),
            state.noise,
            (noise) => change({noise}),
          ),
        ]
      : []),
  );
  slots.checks.replaceChildren(
    ...[
      view.hasControls ? toggle('controls', 'controls', 'Show the controls') : null,
      view.hasPaper ? toggle('paper', 'paper’s values', 'Show what the paper reports under each cell') : null,
    ].filter(Boolean),
  );
  if ($('filter').value !== state.filter) $('filter').value = state.filter;
}

// The filter is made once: a field that is replaced while someone types loses what an input method is composing.
const slots = {data: h('div'), metric: h('div'), rule: h('div'), noise: h('div'), checks: h('div', {class: 'checks'})};
$('controls').append(
  slots.data,
  slots.metric,
  slots.rule,
  slots.noise,
  h(
    'div',
    {class: 'field grow'},
    h('label', {for: 'filter'}, 'Filter methods'),
    h('input', {
      id: 'filter',
      type: 'search',
      placeholder: 'name or words',
      autocomplete: 'off',
      spellcheck: 'false',
      maxlength: 200,
      input: (e) => {
        change({filter: e.target.value});
        announce();
      },
    }),
  ),
  slots.checks,
);

function announce() {
  const view = state.overall ? overallView(board, state) : viewOf(board, state);
  $('live').textContent = `${view.rows.length} of ${plural(view.all.length, 'method')} shown`;
}
