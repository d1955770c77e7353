/* The page of a run: one step at a time, by slider, keys, clicks in a chart, or playing. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const byId = (id) => document.getElementById(id);

  // Canvases do not follow the theme by themselves.
  const themed = [];
  GPAS.onTheme = (action) => themed.push(action);
  for (const query of ['(prefers-color-scheme: dark)', 'print']) {
    window.matchMedia(query).addEventListener('change', () => themed.forEach((action) => action()));
  }

  function charts(run, go) {
    const { steps, unit, scales, kernels, colours } = run;
    const together = kernels.labels.length > 1 ? ', all kernels together' : '';
    const host = byId('charts');
    const staged = run.kind === 'stages';
    const word = staged ? 'stage' : 'readings';
    const column = (key) => steps.map((step) => (step[key] === undefined ? null : step[key]));
    const has = (values) => values.some((v) => v !== null);
    const made = [];
    const shared = {
      x: steps.map((step) => step.n), xLabel: word, whole: true, onPick: go,
      heading: (i) => `${word} ${steps[i].n}`,
    };
    const add = (spec) => made.push(GPAS.chart(host, { ...shared, ...spec }));
    /**
     * A range without the first values where they are far above the rest, which they would flatten:
     * what is not known at all before the first readings may be any number.
     */
    function settled(values, fromZero, colour = 'var(--accent)') {
      for (const [count, times] of [[1, 1.4], [2, 3], [3, 3]]) {
        const first = values.slice(0, count).filter((v) => v !== null);
        const rest = values.slice(count).filter((v) => v !== null);
        if (rest.length < Math.max(3, 5 * (count - 1))) return {};
        if (!first.length) continue; // before the first stage nothing was decided
        const [low, high, top] = [Math.min(...rest), Math.max(...rest), Math.max(...first)];
        const floor = fromZero ? 0 : low - 0.08 * (high - low);
        if (!(high > floor && top - floor > times * (high - floor))) continue;
        const at = steps[values.indexOf(top)].n;
        const name = `${word} ${at}: ${GPAS.number(top, 3)}, above this chart`;
        return { range: [floor, high + 0.08 * (high - floor)], legend: [{ name, colour, mark: 'stroke' }] };
      }
      return {};
    }
    const line = (name, values, colour, more) => ({ kind: 'line', name, values, colour, ...more });
    const [rmspe, nlpd, promised] = [column('rmspe'), column('nlpd'), column('promised')];
    const inUnit = (name) => (unit ? `${name} [${unit}]` : name);
    if (run.regret) add(regret(run, inUnit, line));
    if (has(rmspe)) {
      add({ title: inUnit('Error at unread places (RMSPE)'), unit, fromZero: true, ...settled(rmspe, true), series: [line('RMSPE', rmspe, 'var(--accent)')] });
    }
    if (has(promised) && steps.length > 1) {
      const title = inUnit('Expected error of the map');
      const series = [line('expected', promised, 'var(--second)')];
      if (run.floor) {
        const least = steps.map(() => run.floor[0]);
        series.push(line(`lower bound for any route with ${run.floor[1]} readings`, least, 'var(--soft)', { dash: '5 4', width: 1.2 }));
      }
      const view = settled(promised, true, 'var(--second)');
      if (view.legend && run.floor) view.legend.push({ name: series[1].name, colour: 'var(--soft)', mark: 'dashed' });
      add({ title, unit, fromZero: true, ...view, series });
    }
    if (has(nlpd)) add({ title: 'Log loss of the true values (NLPD) [nat]', unit: 'nat', ...settled(nlpd, false), series: [line('NLPD', nlpd, 'var(--accent)')] });
    for (const [key, what] of [['held', 'True values'], ['heldReadings', 'New readings']]) {
      const share = (k) => steps.map((step) => step[key][k]);
      if (!has(share(1))) continue;
      const lines = [['50 %', 'var(--soft)'], ['90 %', 'var(--accent)'], ['95 %', 'var(--second)']];
      add({
        title: `${what} inside the predicted intervals [%]`, unit: '%', range: [0, 102],
        series: lines.map(([name, colour], k) => line(name, share(k), colour)),
      });
    }
    if (kernels.labels.length > 1 && steps.length > 1) add(belief(steps, kernels, 'kernels', 'Probability of each kernel', colours));
    if (scales.labels.length > 1 && steps.length > 1) add(belief(steps, scales, 'weights', `Probability of each length-scale${together}`, colours));
    const [lower, upper] = [column('lower'), column('upper')];
    const bracket = run.valueUnit ? ` [${run.valueUnit}]` : '';
    if (has(lower)) {
      const gap = steps.map((_, i) => (lower[i] === null ? null : Math.max(0, upper[i] - lower[i])));
      const same = gap.every((g) => g === null || g < 1e-9);
      const bounds = same ? [line('value', lower, 'var(--second)')] : [line('upper', upper, 'var(--ink)', { width: 1.2 }), line('lower', lower, 'var(--second)')];
      const view = settled(upper, false, bounds[0].colour);
      if (view.legend && !same) {
        view.range = [Math.min(view.range[0], ...lower.filter((v) => v !== null)), view.range[1]];
        view.legend = [{ name: `upper (${view.legend[0].name})`, colour: bounds[0].colour, mark: 'stroke' }, { name: 'lower', colour: bounds[1].colour, mark: 'stroke' }];
      }
      add({ title: (same ? 'Value of the decision' : 'Bounds on the decision’s value') + bracket, unit: run.valueUnit, ...view, series: bounds });
      if (!same) add({ title: `Gap between the bounds${bracket}`, unit: run.valueUnit, fromZero: true, ...settled(gap, true, 'var(--third)'), series: [line('gap', gap, 'var(--third)')] });
    }
    let seconds = column('planSeconds');
    if (has(seconds)) {
      const second = Math.max(...seconds) >= 0.02 ? 's' : 'ms';
      if (second === 'ms') seconds = seconds.map((v) => (v === null ? null : 1000 * v));
      const flags = column('limit');
      add({
        title: `Planning time [${second}]`, unit: second, fromZero: true,
        series: [{ kind: 'bars', name: 'planning', values: seconds, colour: 'var(--second)', flags, flagColour: 'var(--accent)' }],
        legend: flags.some(Boolean) ? [{ name: has(lower) ? 'gap closed' : 'ended by itself', colour: 'var(--second)' }, { name: 'limit reached', colour: 'var(--accent)' }] : null,
      });
    }
    if (!made.length || steps.length < 2) {
      byId('charts-title').hidden = true;
      host.hidden = true;
    } else if (!staged) byId('charts-title').textContent = 'Reading by reading';
    return made;
  }

  /** What each stage missed, its mean so far, and the bound on that where it fits in. */
  function regret(run, inUnit, line) {
    const { each, average, recommended, bound } = run.regret;
    const series = [
      line('of the stage', each, 'var(--soft)', { width: 1 }),
      line('mean so far', average, 'var(--accent)'),
      line('of the place found', recommended, 'var(--second)'),
    ];
    const most = Math.max(...each.filter((v) => v !== null));
    const fits = bound && bound.some((v) => v !== null && v <= 2 * most);
    if (fits) series.push(line('bound on the mean', bound, 'var(--ink)', { dash: '5 4', width: 1.2 }));
    const range = fits ? [0, 2 * most] : null;
    return { title: inUnit('Regret'), unit: run.unit, fromZero: true, range, series };
  }

  function scaleColours(count, table) {
    return Array.from({ length: count }, (_, i) => table[Math.round((i * (table.length - 1)) / Math.max(count - 1, 1))]);
  }

  /** Areas on top of each other: the share of each length-scale, or kernel. */
  function belief(steps, parts, key, title, colours) {
    const shades = scaleColours(parts.labels.length, colours.values);
    let below = steps.map(() => 0);
    const series = parts.labels.map((name, k) => {
      const low = below;
      const high = below.map((v, i) => v + steps[i][key][k]);
      below = high;
      const text = (i) => `${(100 * steps[i][key][k]).toFixed(0)} %`;
      return { kind: 'band', name, low, high, colour: shades[k], opacity: 1, text };
    });
    const entries = series.map((s) => ({ name: s.name, colour: s.colour }));
    const long = entries.reduce((sum, entry) => sum + entry.name.length, 0) > 150;
    const newest = steps[steps.length - 1][key];
    const counts = long ? entries.filter((_, k) => newest[k] >= 0.02) : entries;
    const rest = entries.length - counts.length;
    if (rest) counts.push({ name: `${rest} others below 2 %`, colour: 'transparent' });
    return { title, series, range: [0, 1.0001], legend: counts };
  }

  function readout(run, step, s, past) {
    const host = byId('readout');
    host.replaceChildren();
    const parts = [];
    if (step.probe) parts.push([step.probe, '']);
    if (step.place !== undefined) {
      const going = run.goesOn && s === run.steps.length - 1; // to the place, which is not read yet
      const none = going ? 'is the next place' : 'no reading';
      const read = step.value === null ? none : `read ${GPAS.withUnit(step.value, run.unit)}`;
      parts.push([run.places.names[step.place], read]);
    } else if (step.home) parts.push([run.places.names[step.path[step.path.length - 1]], 'is the end place']);
    else if (s === 0) parts.push(['Before the first ' + (run.kind === 'stages' ? 'decision' : 'reading'), '']);
    parts.push([`${step.observed} of ${run.places.n}`, 'places read']);
    if (step.promised !== null) parts.push([GPAS.withUnit(step.promised, run.unit, 3), 'expected error']);
    if (step.rmspe !== null) parts.push([GPAS.withUnit(step.rmspe, run.unit, 3), 'RMSPE']);
    if (step.driven) parts.push([step.driven, 'driven']);
    const closed = past.closed(s).size;
    if (closed) parts.push([String(closed), `place${closed === 1 ? '' : 's'} closed by the limits`]);
    const shown = run.maps.steps[GPAS.rowOf(run.maps, s)];
    if (shown !== s) parts.push([`maps of ${run.kind === 'stages' ? 'stage' : 'reading'} ${run.steps[shown].n}`, '(not every step has its own)']);
    parts.forEach(([strong, rest], i) => {
      GPAS.element('b', '', strong, host);
      host.append(`${rest ? ` ${rest}` : ''}${i + 1 < parts.length ? ' · ' : ''}`);
    });
  }

  /**
   * Show a run. Returns what shows it again as it has become: at its newest step where that was
   * shown, else at the step that was.
   */
  GPAS.start = (first) => {
    const slider = byId('slider');
    let run, steps, scales, kernels, staged, last, past, field, made, shades, tints, map;
    let now = null;
    let asks = null; // the number of the step that was gone to; null = the newest, whichever that is
    let timer = null;

    function load(next) {
      const section = byId('run');
      section.style.minHeight = `${section.offsetHeight}px`; // the window keeps its place
      run = next;
      ({ steps, scales, kernels } = run);
      staged = run.kind === 'stages';
      last = steps.length - 1;
      themed.length = 0; // of what is replaced
      byId('field').classList.remove('single');
      byId('field').replaceChildren();
      byId('charts').replaceChildren();
      byId('charts-title').hidden = byId('charts').hidden = false;
      past = GPAS.history(run);
      field = GPAS.field(byId('field'), run, past);
      made = charts(run, (s) => go(s));
      byId('downloads').replaceChildren();
      GPAS.downloads(byId('downloads'), run, () => ({ at: map, number: steps[now].n }));
      byId('quality').replaceChildren();
      byId('quality').hidden = !run.quality;
      if (run.quality) GPAS.quality(byId('quality'), run);
      shades = scaleColours(scales.labels.length, run.colours.values);
      tints = scaleColours(kernels.labels.length, run.colours.values);
      slider.max = last;
      byId('larger').hidden = run.places.shape === 'line';
      document.querySelector('.bar').hidden = last === 0;
      now = asks === null ? last : Math.max(0, steps.findLastIndex((step) => step.n <= asks));
      show();
      section.style.minHeight = '';
    }

    function show() {
      const step = steps[now];
      slider.value = now;
      const stages = steps[last].home ? steps[last].n - 1 : steps[last].n;
      let words = staged ? `stage ${step.n} of ${stages}` : `reading ${step.n} of ${stages}`;
      if (step.home) words = `after ${stages} stages: the way home`;
      slider.setAttribute('aria-valuetext', words);
      byId('where').textContent = words;
      readout(run, step, now, past);
      map = field.show(now);
      made.forEach((chart) => chart.setCursor(now));
      if (kernels.labels.length > 1) byId('belief-title').textContent = 'Probability of each length-scale, all kernels together';
      byId('belief').hidden = scales.labels.length < 2 && kernels.labels.length < 2;
      byId('kernels').hidden = kernels.labels.length < 2;
      if (kernels.labels.length > 1) GPAS.weights(byId('kernel-rows'), kernels.labels, step.kernels, kernels.prior, tints, scales.labels.length < 2);
      GPAS.weights(byId('belief-rows'), scales.labels, step.weights, scales.prior, shades);
      byId('why').hidden = !staged;
      byId('why').parentElement.classList.toggle('alone', !staged);
      byId('why-text').textContent = step.why || 'No decision yet: the map before the first reading.';
      byId('outcome').textContent = step.outcome || '';
      GPAS.candidates(byId('why-rows'), step.candidates, step.chosen ?? step.place, step.others || 0, run.places.names, run.valueUnit);
    }

    function go(s, keep = false) {
      if (!keep) pause();
      now = Math.min(last, Math.max(0, s));
      asks = now === last ? null : steps[now].n;
      show();
      if (!keep) history.replaceState(null, '', `#${staged ? 'stage' : 'reading'}=${steps[now].n}`);
    }

    function pause() {
      if (timer === null) return;
      clearInterval(timer);
      timer = null;
      icon();
    }

    function play() {
      if (timer !== null) {
        go(now);
        return;
      }
      if (now === last) go(0, true);
      timer = setInterval(() => {
        if (now < last) go(now + 1, true);
        else go(now);
      }, Math.min(700, Math.max(90, 24000 / steps.length)));
      icon();
    }

    function icon() {
      const button = byId('play');
      const word = timer === null ? 'Play' : 'Pause';
      button.querySelector('path').setAttribute('d', timer === null ? 'M2 1l11 6-11 6z' : 'M2 1h4v12H2zM8 1h4v12H8z');
      button.setAttribute('aria-label', word);
      button.title = `${word} (space)`;
    }

    /** The step that the address asks for: the newest that is not after it. */
    function asked() {
      const match = /^#(?:stage|reading|step)=(\d+)$/.exec(location.hash);
      if (!match) return null;
      let found = 0;
      steps.forEach((step, i) => {
        if (step.n <= Number(match[1])) found = i;
      });
      return found;
    }

    slider.addEventListener('input', () => go(Number(slider.value)));
    byId('play').addEventListener('click', play);
    byId('larger').addEventListener('click', () => {
      const large = byId('field').classList.toggle('large');
      byId('larger').setAttribute('aria-pressed', String(large));
    });
    byId('back').addEventListener('click', () => go(now - 1));
    byId('next').addEventListener('click', () => go(now + 1));
    window.addEventListener('hashchange', () => {
      const s = asked();
      if (s !== null && s !== now) go(s);
    });
    document.addEventListener('keydown', (event) => {
      const busy = event.target.closest('input, button, summary, pre, a') || event.ctrlKey || event.metaKey || event.altKey;
      const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last };
      if (busy && !(event.target.closest('.bar button') && event.key in moves)) return;
      if (event.key === ' ') play();
      else if (event.key in moves) go(moves[event.key]);
      else return;
      event.preventDefault();
    });
    load(first);
    const begin = asked();
    if (begin !== null) go(begin, true);
    return load;
  };

  /** Buttons of the quantities above the maps; `pick(i)` shows another one. */
  GPAS.chooser = (names, chosen, pick) => {
    const host = byId('chooser');
    host.hidden = names.length < 2;
    host.replaceChildren();
    names.forEach((name, i) => {
      const button = GPAS.element('button', '', name, host);
      button.type = 'button';
      button.setAttribute('aria-pressed', String(i === chosen));
      button.addEventListener('click', () => {
        [...host.children].forEach((other) => other.setAttribute('aria-pressed', String(other === button)));
        pick(i);
      });
    });
  };

  GPAS.trouble = (error) => {
    byId('trouble').textContent = `The maps and charts cannot be shown: ${error.message}`;
    byId('trouble').hidden = false;
    document.documentElement.dataset.ready = 'no';
  };

  GPAS.ready = (async () => {
    const data = JSON.parse(byId('data').textContent);
    if (data.live) return; // another script gets it piece by piece
    const runs = await Promise.all([data, ...(data.further || [])].map((one) => GPAS.decode({ ...data, ...one })));
    const load = GPAS.start(runs[0]);
    GPAS.chooser(runs.map((run) => run.quantity), 0, (i) => load(runs[i]));
    document.documentElement.dataset.ready = 'yes';
  })().catch((error) => {
    GPAS.trouble(error);
    throw error;
  });
})();
