/* Cells as SVG: a map over two inputs with its axes, a matrix with its names. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const { element, svg, ticks } = GPAS;

  /** Draw again when the width changes. */
  function follow(plot, least, draw) {
    let width = 0;
    const fit = () => {
      const now = Math.max(least, Math.floor(plot.clientWidth));
      if (Math.abs(now - width) > 1) draw((width = now));
    };
    fit();
    new ResizeObserver(fit).observe(plot);
  }

  /**
   * A map in a figure of its own.
   *
   * spec: title, names, low, high (of both inputs), columns, rows, ratio (height to width), values
   * (row after row, the first at the bottom), table (colours), range, label (of the colours),
   * points ([x, y] drawn on top), describe(i) (lines for the box).
   */
  GPAS.heat = (host, spec) => {
    const figure = element('figure', 'chart', null, host);
    element('h3', '', spec.title, figure);
    const legend = element('div', '', null, figure);
    if (spec.points.length) GPAS.legend([{ name: 'rows', colour: 'var(--ink)', mark: 'dot' }], legend);
    const plot = element('div', 'plot', null, figure);
    const tip = GPAS.tip(figure);
    const [LEFT, RIGHT, TOP, BOTTOM] = [46, 8, 6, 34];
    const { low, high, columns, rows } = spec;
    follow(plot, 240, (width) => {
      const inner = width - LEFT - RIGHT;
      const tall = inner * spec.ratio;
      const height = tall + TOP + BOTTOM;
      plot.replaceChildren();
      const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${spec.title}, over ${spec.names.join(' and ')}` }, plot);
      const [wide, high_] = [inner / columns, tall / rows];
      const cells = svg('g', { 'shape-rendering': 'crispEdges' }, root);
      spec.values.forEach((value, i) => {
        const [column, row] = [i % columns, Math.floor(i / columns)];
        svg('rect', {
          x: (LEFT + column * wide).toFixed(2), y: (TOP + tall - (row + 1) * high_).toFixed(2),
          width: (wide + 0.5).toFixed(2), height: (high_ + 0.5).toFixed(2),
          fill: GPAS.colourOf(spec.table, spec.range[0], spec.range[1], value),
        }, cells);
      });
      const x = (v) => LEFT + ((v - low[0]) / (high[0] - low[0])) * inner;
      const y = (v) => TOP + tall - ((v - low[1]) / (high[1] - low[1])) * tall;
      for (const [px, py] of spec.points) {
        svg('circle', { cx: x(px).toFixed(1), cy: y(py).toFixed(1), r: 1.7, fill: 'var(--ink)', stroke: 'var(--card)', 'stroke-width': 0.7 }, root);
      }
      for (const { value, label } of ticks(low[0], high[0], width / 80)) {
        svg('text', { x: x(value), y: height - BOTTOM + 15, 'text-anchor': 'middle' }, root, label);
      }
      for (const { value, label } of ticks(low[1], high[1], tall / 40)) {
        svg('text', { x: LEFT - 6, y: y(value) + 3.5, 'text-anchor': 'end' }, root, label);
      }
      svg('text', { x: LEFT + inner / 2, y: height - 3, 'text-anchor': 'middle' }, root, spec.names[0]);
      svg('text', { x: 10, y: TOP + tall / 2, 'text-anchor': 'middle', transform: `rotate(-90 10 ${TOP + tall / 2})` }, root, spec.names[1]);
      root.addEventListener('pointermove', (event) => {
        const box = plot.getBoundingClientRect();
        const frame = figure.getBoundingClientRect();
        const column = Math.floor((((event.clientX - box.left) / box.width) * width - LEFT) / wide);
        const row = Math.floor((TOP + tall - ((event.clientY - box.top) / box.width) * width) / high_);
        if (column < 0 || row < 0 || column >= columns || row >= rows) {
          tip.hide();
          return;
        }
        const at = [column, row].map((k, d) => low[d] + ((k + 0.5) / [columns, rows][d]) * (high[d] - low[d]));
        const where = at.map((v, d) => `${spec.names[d]} ${GPAS.number(v, 3)}`).join(', ');
        tip.show(event.clientX - frame.left, event.clientY - frame.top, where, spec.describe(row * columns + column));
      });
      root.addEventListener('pointerleave', () => tip.hide());
    });
    GPAS.ramp(figure, spec.table, spec.range, spec.label);
  };

  /** A matrix of correlations: orange above 0, blue below, as strong as the largest beside the diagonal. */
  GPAS.matrix = (host, names, values) => {
    const figure = host.closest('figure');
    const plot = element('div', 'plot', null, host);
    const tip = GPAS.tip(figure);
    const beside = values.flatMap((row, i) => row.filter((_, j) => j !== i).map(Math.abs));
    const most = Math.max(0.05, ...beside);
    follow(plot, 220, (width) => {
      const longest = Math.max(...names.map((name) => name.length));
      const left = Math.min(0.42 * width, 8 + 6.4 * longest);
      const n = Math.min(names.length, Math.floor((width - left - 4) / 12)); // as many as have room for a name
      const side = Math.min(28, (width - left - 4) / n);
      const below = Math.min(120, 8 + 6.4 * longest);
      const height = n * side + below;
      plot.replaceChildren();
      const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Correlations between ${n} kernels` }, plot);
      const fits = Math.floor((left - 8) / 6.4);
      const short = (name, room) => (name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name);
      const bottom = Math.floor((below - 8) / 6.4);
      names.slice(0, n).forEach((name, i) => {
        svg('text', { x: left - 6, y: (i + 0.5) * side + 4, 'text-anchor': 'end' }, root, short(name, fits));
        const at = left + (i + 0.5) * side + 4;
        svg('text', { x: at, y: n * side + 6, 'text-anchor': 'end', transform: `rotate(-90 ${at} ${n * side + 6})` }, root, short(name, bottom));
        values[i].slice(0, n).forEach((value, j) => {
          const cell = svg('rect', {
            x: left + j * side, y: i * side, width: Math.max(1, side - 1), height: Math.max(1, side - 1), rx: Math.min(2, side / 6),
            fill: i === j ? 'var(--line)' : value < 0 ? 'var(--second)' : 'var(--accent)',
            'fill-opacity': i === j ? 0.5 : Math.max(0.03, Math.abs(value) / most).toFixed(3),
          }, root);
          cell.dataset.pair = `${i},${j}`;
        });
      });
      root.addEventListener('pointermove', (event) => {
        const pair = event.target.dataset && event.target.dataset.pair;
        if (!pair) {
          tip.hide();
          return;
        }
        const [i, j] = pair.split(',').map(Number);
        const frame = figure.getBoundingClientRect();
        const heading = i === j ? names[i] : `${names[i]} and ${names[j]}`;
        tip.show(event.clientX - frame.left, event.clientY - frame.top, heading, [`correlation ${values[i][j].toFixed(2).replace('-', '−')}`]);
      });
      root.addEventListener('pointerleave', () => tip.hide());
    });
    return most;
  };
})();
