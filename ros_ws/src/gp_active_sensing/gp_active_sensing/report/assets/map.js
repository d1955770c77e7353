/* A map on a canvas: places coloured by their values, and what is drawn over them. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const TALLEST = 1.25; // of the width
  const REACH = 16; // how far from a place the mouse still means it [px]

  /** How a map fits a canvas of some width: size, every point in pixels, every place's middle. */
  function layout(places, width) {
    const side = places.shape === 'cells' ? places.side / 2 : 0;
    const { layers } = places;
    const [least, most] = layers ? [layers.low, layers.high] : [places.low, places.high];
    const { shore } = places;
    const low = least.map((v, i) => Math.min(v - side, shore ? shore.low[i] : v));
    const high = most.map((v, i) => Math.max(v + side, shore ? shore.high[i] : v));
    const margin = places.shape === 'cells' ? 2 : 8;
    const room = GPAS.room(width, layers);
    const [wide, tall] = [Math.max(high[0] - low[0], 1e-9), Math.max(high[1] - low[1], 1e-9)];
    const inner = width - room.left - 2 * margin;
    const factor = Math.min(inner / wide, (inner * TALLEST) / tall);
    const above = Math.max(60, Math.ceil(tall * factor) + 2 * margin);
    const height = above + room.bottom;
    const x0 = room.left + (width - room.left - wide * factor) / 2;
    const y0 = (above + tall * factor) / 2;
    const stroke = Math.min(4, Math.max(1.1, width / (6.5 * Math.sqrt(places.n))));
    const found = { width, height, factor, stroke, side: places.side * factor };
    found.box = { left: x0, right: x0 + wide * factor, top: y0 - tall * factor, bottom: y0 };
    [found.low, found.high] = [low, high];
    const shift = (i, axis) => (layers ? layers.shifts[layers.of[i]][axis] : 0);
    found.x = Float32Array.from(places.x, (x, i) => x0 + (x + shift(i, 0) - low[0]) * factor);
    found.y = Float32Array.from(places.y, (y, i) => y0 - (y + shift(i, 1) - low[1]) * factor);
    found.at = (x, y) => [x0 + (x - low[0]) * factor, y0 - (y - low[1]) * factor];
    found.squareAt = (x, y, width) => {
      // Whole pixels and a hair more: no seams between the cells.
      const [left, top] = [Math.floor(x - width / 2), Math.floor(y - width / 2)];
      return [left, top, Math.ceil(x + width / 2) - left, Math.ceil(y + width / 2) - top];
    };
    found.middle = new Float32Array(2 * places.n);
    for (let i = 0; i < places.n; i += 1) place(places, found, i);
    return found;
  }

  /** Move a street a little to its right, so that both directions show; find its middle. */
  function place(places, found, i) {
    const [first, end] = [places.offsets[i], places.offsets[i + 1]];
    const { x, y, stroke } = found;
    const [dx, dy] = [x[end - 1] - x[first], y[end - 1] - y[first]];
    const length = Math.hypot(dx, dy);
    let total = 0;
    for (let j = first; j < end; j += 1) {
      if (length > 0) {
        x[j] -= (0.75 * stroke * dy) / length;
        y[j] += (0.75 * stroke * dx) / length;
      }
      if (j > first) total += Math.hypot(x[j] - x[j - 1], y[j] - y[j - 1]);
    }
    let left = total / 2;
    let at = [x[first], y[first]];
    for (let j = first + 1; j < end; j += 1) {
      const part = Math.hypot(x[j] - x[j - 1], y[j] - y[j - 1]);
      const share = part > 0 ? Math.min(1, left / part) : 0;
      if (left >= 0) at = [x[j - 1] + share * (x[j] - x[j - 1]), y[j - 1] + share * (y[j] - y[j - 1])];
      left -= part;
    }
    found.middle.set(at, 2 * i);
  }

  /** Say above each layer of a map how high it lies. */
  function heights(pen, where, layers) {
    pen.font = '12px system-ui, sans-serif';
    pen.fillStyle = GPAS.variable('--soft');
    pen.textBaseline = 'bottom';
    layers.labels.forEach((label, k) => {
      const [x, y] = where.at(...layers.corners[k]);
      pen.fillText(label, x, y - 2);
    });
  }

  /** Shore, islands, fences and walls. */
  function edges(pen, where, shore) {
    pen.save();
    pen.beginPath();
    let i = 0;
    for (const size of shore.sizes) {
      for (let k = 0; k < size; k += 1, i += 1) {
        const at = where.at(shore.x[i], shore.y[i]);
        if (k) pen.lineTo(...at);
        else pen.moveTo(...at);
      }
    }
    pen.lineJoin = 'round';
    pen.lineCap = 'round';
    pen.lineWidth = 1.6;
    pen.strokeStyle = GPAS.variable('--ink');
    pen.stroke();
    pen.restore();
  }

  /** Stripes over places (a Set) that are closed. */
  GPAS.hatch = (pen, where, trace, places, closed) => {
    if (!closed.size) return;
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const stripe = tile.getContext('2d');
    stripe.globalAlpha = 0.35;
    stripe.fillStyle = GPAS.variable('--card');
    stripe.fillRect(0, 0, 6, 6);
    stripe.globalAlpha = 0.8;
    stripe.strokeStyle = GPAS.variable('--ink');
    stripe.lineWidth = 1.2;
    stripe.beginPath();
    for (const shift of [-6, 0, 6]) {
      stripe.moveTo(shift - 1, 7);
      stripe.lineTo(shift + 7, -1);
    }
    stripe.stroke();
    const pattern = pen.createPattern(tile, 'repeat');
    pen.save();
    pen.setLineDash([]);
    pen.fillStyle = pen.strokeStyle = pattern;
    pen.lineWidth = where.stroke + 2;
    pen.beginPath();
    for (const p of closed) {
      if (places.shape === 'cells') pen.rect(...where.squareAt(where.x[p], where.y[p], where.side));
      else trace(pen, p);
    }
    if (places.shape === 'cells') pen.fill();
    else pen.stroke();
    pen.restore();
  };

  function distance(x, y, x0, y0, x1, y1) {
    const [dx, dy] = [x1 - x0, y1 - y0];
    const square = dx * dx + dy * dy;
    const share = square > 0 ? Math.max(0, Math.min(1, ((x - x0) * dx + (y - y0) * dy) / square)) : 0;
    return Math.hypot(x - x0 - share * dx, y - y0 - share * dy);
  }

  /**
   * A panel. `over(pen, where)` draws on top, with `where` the layout; it is called on every
   * `draw()`. `show(values, table, range)` sets the colours.
   */
  GPAS.map = (figure, places, label, over) => {
    const canvas = GPAS.element('canvas', 'map', null, figure);
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', label);
    const below = document.createElement('canvas'); // the places; only the rest changes with the mouse
    let where = null;
    let shown = null;

    function fit() {
      const ratio = window.devicePixelRatio || 1;
      where = layout(places, Math.max(160, canvas.clientWidth));
      canvas.style.height = `${where.height}px`;
      const { left, top, right, bottom } = where.box;
      canvas.dataset.box = [left, top, right, bottom].join(); // of the map inside its axes [px]
      for (const sheet of [canvas, below]) {
        sheet.width = Math.round(where.width * ratio);
        sheet.height = Math.round(where.height * ratio);
        sheet.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
      }
      if (GPAS.basemap) GPAS.basemap(canvas, places, where);
    }

    function trace(pen, i) {
      pen.moveTo(where.x[places.offsets[i]], where.y[places.offsets[i]]);
      for (let j = places.offsets[i] + 1; j < places.offsets[i + 1]; j += 1) pen.lineTo(where.x[j], where.y[j]);
    }

    function paint() {
      const pen = below.getContext('2d');
      pen.clearRect(0, 0, where.width, where.height);
      if (!shown) return;
      const { values, table, range, finer } = shown;
      if (finer) {
        const side = finer.side * where.factor;
        finer.values.forEach((value, i) => {
          pen.fillStyle = GPAS.colourOf(table, range[0], range[1], value);
          pen.fillRect(...where.squareAt(...where.at(finer.x[i], finer.y[i]), side));
        });
        return;
      }
      pen.lineCap = 'round';
      pen.lineJoin = 'round';
      pen.lineWidth = where.stroke;
      for (let i = 0; i < places.n; i += 1) {
        const colour = GPAS.colourOf(table, range[0], range[1], values[i]);
        if (places.shape === 'cells') {
          pen.fillStyle = colour;
          pen.fillRect(...where.squareAt(where.x[i], where.y[i], where.side));
        } else {
          pen.strokeStyle = colour;
          pen.beginPath();
          trace(pen, i);
          pen.stroke();
        }
      }
    }

    function draw() {
      if (!where) return;
      const pen = canvas.getContext('2d');
      pen.clearRect(0, 0, where.width, where.height);
      pen.globalAlpha = GPAS.basemap && places.georeference ? 0.6 : 1;
      pen.drawImage(below, 0, 0, where.width, where.height);
      pen.globalAlpha = 1;
      if (places.layers) {
        heights(pen, where, places.layers);
        GPAS.scale(pen, where, places.north, 14);
      }
      else GPAS.axes(pen, where, places.north);
      if (places.shore) edges(pen, where, places.shore);
      over(pen, where, trace);
    }

    function again() {
      fit();
      paint();
      draw();
    }

    new ResizeObserver(() => {
      if (!where || Math.abs(canvas.clientWidth - where.width) > 1) again();
    }).observe(canvas);

    return {
      canvas,
      draw,
      again,
      /** Set values and colours; `finer` has points of its own, `{x, y, side, values}`. */
      show(values, table, range, finer = null) {
        shown = { values, table, range, finer };
        if (!where) fit();
        paint();
        draw();
      },
      /** The place under the mouse, null when there is none near. */
      at(x, y) {
        let [best, nearest] = [null, REACH];
        for (let i = 0; i < places.n; i += 1) {
          const [first, end] = [places.offsets[i], places.offsets[i + 1]];
          let d = Math.hypot(where.x[first] - x, where.y[first] - y);
          for (let j = first + 1; j < end; j += 1) {
            d = Math.min(d, distance(x, y, where.x[j - 1], where.y[j - 1], where.x[j], where.y[j]));
          }
          if (places.shape === 'cells') {
            const off = Math.max(Math.abs(where.x[i] - x), Math.abs(where.y[i] - y));
            d = off <= where.side / 2 ? 0 : Infinity;
          }
          if (d < nearest) [best, nearest] = [i, d];
        }
        return best;
      },
    };
  };

  /** The colours of a map and what they mean; returns what puts other numbers to them. */
  GPAS.ramp = (figure, table, range, label) => {
    const ramp = GPAS.element('div', 'ramp', null, figure);
    ramp.style.background = `linear-gradient(to right, ${table.join(', ')})`;
    const scale = GPAS.element('div', 'ticks', null, figure);
    const mark = ([low, high]) => {
      scale.replaceChildren();
      for (const tick of GPAS.ticks(low, high, 6)) {
        const share = (tick.value - low) / (high - low || 1);
        const text = GPAS.element('span', '', tick.label, scale);
        text.style.left = `${100 * share}%`;
        text.style.transform = `translateX(${-100 * Math.min(1, Math.max(0, share < 0.06 ? 0 : share > 0.94 ? 1 : 0.5))}%)`;
      }
    };
    mark(range);
    GPAS.element('p', 'ramp-label', label, figure);
    return mark;
  };
})();
