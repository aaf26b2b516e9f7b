// Above the table: tabs of datasets, the metric, the rule, the noise, the filter.

function renderTabs() {
  const datasets = list(board.datasets);
  $('tabs').replaceChildren(
    ...datasets.map((d) => {
      const here = d.name === state.dataset;
      return h(
        'button',
        {
          type: 'button',
          role: 'tab',
          'aria-selected': String(here),
          'aria-controls': 'panel',
          tabindex: here ? '0' : '-1',
          'data-key': `tab-${d.name}`,
          id: here ? 'tab-here' : null,
          click: () => change({dataset: d.name, cell: null}),
          title: d.title && d.title !== d.name ? str(d.title) : null,
        },
        name(d.name),
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

function metricMenu(dataset) {
  const title = (metric) => str(metricOf(board, metric).title || metric);
  return h(
    'div',
    {class: 'field'},
    h('label', {for: 'metric'}, 'Metric'),
    h(
      'select',
      {id: 'metric', 'data-key': 'metric', change: (e) => chooseMetric(e.target.value)},
      list(dataset.metrics)
        .map(str)
        .map((m) => h('option', {value: m, selected: m === state.metric}, title(m))),
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
  slots.metric.replaceChildren(...(list(dataset.metrics).length > 1 ? [metricMenu(dataset)] : []));
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
const slots = {metric: h('div'), rule: h('div'), noise: h('div'), checks: h('div', {class: 'checks'})};
$('controls').append(
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
  const view = viewOf(board, state);
  $('live').textContent = `${view.rows.length} of ${plural(view.all.length, 'method')} shown`;
}
