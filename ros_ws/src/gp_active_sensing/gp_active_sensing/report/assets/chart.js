/* Charts as SVG: lines, bands, bars, points with whiskers; a cursor, values beside the mouse. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const { element, svg, ticks } = GPAS;
  const LEFT = 46;
  const RIGHT = 10;
  const TOP = 8;
  const BOTTOM = 32;

  const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

  /** Lowest and highest of everything a chart shows. */
  function extent(spec) {
    const values = [];
    for (const s of spec.series) {
      for (const key of ['values', 'low', 'high']) if (s[key]) values.push(...s[key].filter(known));
      if (s.errors) {
        s.values.forEach((v, i) => {
          if (known(v) && known(s.errors[i])) values.push(v - s.errors[i], v + s.errors[i]);
        });
      }
    }
    if (!values.length) return [0, 1];
    let low = values.reduce((a, b) => Math.min(a, b));
    let high = values.reduce((a, b) => Math.max(a, b));
    if (spec.fromZero) low = Math.min(0, low);
    if (high === low) {
      high += 0.5 * (Math.abs(high) || 1);
      if (!spec.fromZero) low -= 0.5 * (Math.abs(low) || 1);
    }
    const margin = 0.05 * (high - low);
    return [spec.fromZero && low === 0 ? 0 : low - margin, high + margin];
  }

  /** A path through the known points; it breaks where a value is missing. */
  function path(xs, ys) {
    let text = '';
    let drawing = false;
    for (let i = 0; i < xs.length; i += 1) {
      if (known(ys[i])) {
        text += `${drawing ? 'L' : 'M'}${xs[i].toFixed(1)} ${ys[i].toFixed(1)}`;
        if (!drawing && !(i + 1 < xs.length && known(ys[i + 1]))) text += 'h0.01';
        drawing = true;
      } else drawing = false;
    }
    return text;
  }

  function band(xs, lows, highs) {
    const forth = xs.map((x, i) => `${x.toFixed(1)} ${highs[i].toFixed(1)}`);
    const back = xs.map((x, i) => `${x.toFixed(1)} ${lows[i].toFixed(1)}`).reverse();
    return `M${[...forth, ...back].join('L')}Z`;
  }

  /**
   * A chart in a figure of its own.
   *
   * spec: title, x (ascending numbers), xLabel, whole (x are whole numbers), series, unit, range
   * ([low, high] of y), fromZero, height, legend (entries of its own), heading(i), onPick(i).
   * series: {kind: line|band|bars|points, name, values | low, high, errors, colour, width, dash,
   * opacity, flags and flagColour (bars), labels (points), xs (points at places of their own),
   * quiet (not in the legend and box)}.
   */
  GPAS.chart = (host, spec) => {
    const figure = element('figure', 'chart', null, host);
    element('h3', '', spec.title, figure);
    const legend = element('div', '', null, figure);
    const plot = element('div', 'plot', null, figure);
    const tip = GPAS.tip(figure);
    let width = 0;
    let scale = null;
    let cursor = spec.cursor ?? null;
    let marks = null;

    function axes(root, height, low, high) {
      const across = ticks(spec.x[0], spec.x[spec.x.length - 1], width / 70, spec.whole);
      for (const { value, label } of ticks(low, high, (height - TOP - BOTTOM) / 34)) {
        const y = scale.y(value);
        svg('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y, y2: y }, root);
        svg('text', { x: LEFT - 6, y: y + 3.5, 'text-anchor': 'end' }, root, label);
      }
      for (const { value, label } of across) {
        const x = scale.x(value);
        svg('text', { x, y: height - BOTTOM + 15, 'text-anchor': 'middle' }, root, label);
      }
      const middle = (LEFT + width - RIGHT) / 2;
      svg('text', { x: middle, y: height - 3, 'text-anchor': 'middle' }, root, spec.xLabel);
    }

    function bars(root, s, base) {
      const step = spec.x.length > 1 ? (scale.x(spec.x[spec.x.length - 1]) - scale.x(spec.x[0])) / (spec.x.length - 1) : 20;
      const wide = Math.max(1, 0.75 * step);
      s.values.forEach((value, i) => {
        if (!known(value)) return;
        const y = scale.y(value);
        svg('path', {
          d: `M${scale.xs[i] - wide / 2} ${base}V${y}h${wide}V${base}Z`,
          fill: s.flags && s.flags[i] ? s.flagColour : s.colour,
        }, root);
      });
    }

    function points(root, s) {
      s.values.forEach((value, i) => {
        if (!known(value)) return;
        const x = (s.xs ? scale.x(s.xs[i]) : scale.xs[i]) + (s.shift || 0);
        const y = scale.y(value);
        const error = s.errors ? s.errors[i] : null;
        if (known(error)) {
          const [top, low] = [scale.y(value + error), scale.y(value - error)];
          const d = `M${x} ${low}V${top}M${x - 3} ${top}h6M${x - 3} ${low}h6`;
          svg('path', { d, stroke: s.colour, fill: 'none', 'stroke-width': 1.3 }, root);
        }
        svg('circle', { cx: x, cy: y, r: s.size || 3, fill: s.colour, 'fill-opacity': s.opacity ?? 1 }, root);
        if (s.labels && s.labels[i]) {
          svg('text', { class: 'number', x, y: y - 7, 'text-anchor': 'middle' }, root, s.labels[i]);
        }
      });
    }

    function draw() {
      width = Math.max(240, Math.floor(plot.clientWidth));
      const height = spec.height || 210;
      const [low, high] = spec.range || extent(spec);
      const pad = spec.series.some((s) => s.kind === 'bars' || s.kind === 'points') ? 8 : 0;
      const [first, last] = [spec.x[0], spec.x[spec.x.length - 1]];
      const inner = width - LEFT - RIGHT - 2 * pad;
      const x = (v) => LEFT + pad + (last > first ? (inner * (v - first)) / (last - first) : inner / 2);
      const clip = (v) => Math.min(high + (high - low), Math.max(low - (high - low), v));
      const y = (v) => TOP + ((high - clip(v)) / (high - low)) * (height - TOP - BOTTOM);
      scale = { x, y, xs: spec.x.map(x), height };
      plot.replaceChildren();
      const root = svg('svg', {
        viewBox: `0 0 ${width} ${height}`,
        role: 'img',
        'aria-label': `${spec.title}: ${spec.series.filter((s) => !s.quiet).map((s) => s.name).join(', ')}`,
        class: spec.onPick ? 'picks' : '',
      }, plot);
      axes(root, height, low, high);
      const clipName = `inside-${GPAS.count()}`;
      const clipPath = svg('clipPath', { id: clipName }, root);
      svg('rect', { x: 0, y: TOP - 4, width, height: height - TOP - BOTTOM + 5 }, clipPath);
      const inside = svg('g', { 'clip-path': `url(#${clipName})` }, root);
      for (const s of spec.series) {
        const at = (values) => values.map((v) => (known(v) ? y(v) : null));
        if (s.kind === 'band') {
          const d = band(scale.xs, at(s.low), at(s.high));
          svg('path', { d, fill: s.colour, 'fill-opacity': s.opacity ?? 0.22 }, inside);
        } else if (s.kind === 'bars') bars(inside, s, y(Math.max(low, 0)));
        else if (s.kind === 'points') points(inside, s);
        else {
          svg('path', {
            d: path(scale.xs.map((v) => v + (s.shift || 0)), at(s.values)), fill: 'none',
            stroke: s.colour, 'stroke-width': s.width || 1.8, 'stroke-dasharray': s.dash || 'none',
            'stroke-linejoin': 'round', 'stroke-linecap': 'round',
          }, inside);
        }
      }
      marks = svg('g', {}, root);
      mark();
    }

    function mark() {
      if (!marks || cursor === null || !(cursor >= 0) || cursor >= spec.x.length) return;
      marks.replaceChildren();
      const x = scale.xs[cursor];
      svg('line', { class: 'cursor', x1: x, x2: x, y1: TOP, y2: scale.height - BOTTOM }, marks);
      for (const s of spec.series) {
        if (s.kind !== 'line' || !known(s.values[cursor]) || s.quiet) continue;
        svg('circle', { cx: x, cy: scale.y(s.values[cursor]), r: 3.6, fill: s.colour }, marks);
      }
    }

    function nearest(event) {
      const box = plot.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * width;
      let best = 0;
      scale.xs.forEach((v, i) => {
        if (Math.abs(v - x) < Math.abs(scale.xs[best] - x)) best = i;
      });
      return best;
    }

    function lines(i) {
      return spec.series.filter((s) => !s.quiet && !s.xs).map((s) => {
        const unit = s.unit ?? spec.unit;
        if (s.kind === 'band') return `${s.name}: ${s.text ? s.text(i) : `${GPAS.number(s.low[i])} to ${GPAS.withUnit(s.high[i], unit)}`}`;
        if (!known(s.values[i])) return null;
        const error = s.errors && known(s.errors[i]) ? ` ± ${GPAS.number(s.errors[i], 3)}` : '';
        return `${s.name}: ${GPAS.number(s.values[i])}${error}${unit ? ` ${unit}` : ''}`;
      }).filter(Boolean);
    }

    plot.addEventListener('pointermove', (event) => {
      const i = nearest(event);
      const box = figure.getBoundingClientRect();
      const shown = lines(i);
      const heading = spec.heading ? spec.heading(i) : `${spec.xLabel} ${GPAS.number(spec.x[i])}`;
      if (shown.length) tip.show(event.clientX - box.left, event.clientY - box.top, heading, shown);
      else tip.hide();
    });
    plot.addEventListener('pointerleave', () => tip.hide());
    if (spec.onPick) plot.addEventListener('click', (event) => spec.onPick(nearest(event)));

    function name() {
      const named = spec.series.filter((s) => !s.quiet && s.name);
      const marked = { line: 'stroke', points: 'dot', band: 'faded' };
      const entries = spec.legend || (named.length < 2 ? [] : named.map((s) => ({
        name: s.name, colour: s.colour, mark: s.dash ? 'dashed' : marked[s.kind],
      })));
      legend.replaceChildren();
      if (entries.length) GPAS.legend(entries, legend);
    }

    name();
    draw();
    new ResizeObserver(() => {
      if (Math.abs(Math.floor(plot.clientWidth) - width) > 1 && plot.clientWidth >= 240) draw();
    }).observe(plot);
    return {
      figure,
      setCursor(index) {
        cursor = index;
        mark();
      },
      update(changes) {
        Object.assign(spec, changes);
        name();
        draw();
      },
    };
  };

  let made = 0;
  GPAS.count = () => (made += 1);
})();
