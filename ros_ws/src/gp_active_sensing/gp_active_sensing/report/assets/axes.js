/* Around a map: axes with their unit, a scale bar, and north where it is known. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const FONT = '11px system-ui, "Liberation Sans", sans-serif';
  const FAR = 5000; // metres from which on kilometres are shown

  /**
   * Room around a map of some width, in pixels: left for the y axis, below for x and the scale.
   * Layers side by side have no axes: one position is in each of them.
   */
  GPAS.room = (width, layers) => (layers ? { left: 0, bottom: 24 } : { left: width < 260 ? 34 : 44, bottom: 40 });

  /** The longest round length that is not longer than some metres. */
  function round(metres) {
    const power = 10 ** Math.floor(Math.log10(metres));
    return [5, 2, 1].map((m) => m * power).find((length) => length <= metres * 1.0001) || power;
  }

  function said(metres) {
    return metres >= 1000 ? `${GPAS.number(metres / 1000)} km` : `${GPAS.number(metres)} m`;
  }

  /**
   * Draw the axes and what is below them. `where` is the layout of the map: `box` (left, top, right, bottom of the map in
   * pixels), `low` and `high` (its corners in metres) and `factor` (pixels a metre).
   */
  GPAS.axes = (pen, where, north) => {
    const { box, low, high, factor } = where;
    const most = Math.max(...low.map(Math.abs), ...high.map(Math.abs));
    const [unit, size] = most >= FAR ? ['km', 1000] : ['m', 1];
    pen.save();
    pen.font = FONT;
    pen.lineWidth = 1;
    pen.setLineDash([]);
    pen.lineCap = 'butt';
    pen.lineJoin = 'miter';
    pen.strokeStyle = GPAS.variable('--line');
    pen.strokeRect(box.left - 0.5, box.top - 0.5, box.right - box.left + 1, box.bottom - box.top + 1);
    pen.fillStyle = GPAS.variable('--soft');
    pen.strokeStyle = GPAS.variable('--soft');
    const x = (v) => box.left + (v * size - low[0]) * factor;
    const y = (v) => box.bottom - (v * size - low[1]) * factor;
    const tick = (x0, y0, x1, y1) => {
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
    };
    const [title, up] = [`x [${unit}]`, `y [${unit}]`];
    const end = box.right - pen.measureText(title).width;
    pen.textBaseline = 'top';
    pen.textAlign = 'right';
    pen.fillText(title, box.right, box.bottom + 6);
    pen.textAlign = 'center';
    for (const { value, label } of GPAS.ticks(low[0] / size, high[0] / size, (box.right - box.left) / 70)) {
      tick(x(value), box.bottom + 1, x(value), box.bottom + 4);
      if (x(value) + pen.measureText(label).width / 2 < end - 6) pen.fillText(label, x(value), box.bottom + 6);
    }
    pen.textAlign = 'right';
    pen.textBaseline = 'middle';
    const tall = box.bottom - box.top;
    if (tall > 30) pen.fillText(up, box.left - 6, box.top + 5);
    for (const { value, label } of GPAS.ticks(low[1] / size, high[1] / size, tall / 45)) {
      tick(box.left - 4, y(value), box.left - 1, y(value));
      if (y(value) > box.top + (tall > 30 ? 18 : 4)) pen.fillText(label, box.left - 6, y(value));
    }
    pen.restore();
    GPAS.scale(pen, where, north, 30);
  };

  /** Draw the scale bar, and north where it is known, so many pixels below the map. */
  GPAS.scale = (pen, where, north, below) => {
    const { box, factor } = where;
    pen.save();
    pen.font = FONT;
    pen.setLineDash([]);
    pen.lineCap = 'butt';
    pen.lineJoin = 'miter';
    pen.textBaseline = 'middle';
    const length = round(Math.min(120, 0.4 * (box.right - box.left)) / factor);
    const [at, level] = [box.left, box.bottom + below];
    pen.strokeStyle = GPAS.variable('--ink');
    pen.fillStyle = GPAS.variable('--ink');
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(at, level - 4);
    pen.lineTo(at, level);
    pen.lineTo(at + length * factor, level);
    pen.lineTo(at + length * factor, level - 4);
    pen.stroke();
    pen.textAlign = 'left';
    pen.fillText(said(length), at + length * factor + 7, level - 2);
    if (north) {
      const right = box.right - 6;
      pen.beginPath();
      pen.moveTo(right, level - 9);
      pen.lineTo(right + 5, level + 3);
      pen.lineTo(right, level);
      pen.lineTo(right - 5, level + 3);
      pen.closePath();
      pen.fill();
      pen.textAlign = 'right';
      pen.font = `600 ${FONT}`;
      pen.fillText('N', right - 9, level - 2);
    }
    pen.restore();
  };
})();
