/* Map tiles under the maps of the live page, from the one server that its user named. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const template = JSON.parse(document.getElementById('data').textContent).tiles;
  if (!template) return;
  const SIDE = 256; // of a tile [px]
  const DEEPEST = 19;
  const MOST = 100; // tiles of a map

  /** Web Mercator: (0, 0) is the north-west corner of the world, (1, 1) the south-east one. */
  const world = ([longitude, latitude]) => [
    (longitude + 180) / 360,
    (1 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / Math.PI) / 2,
  ];

  function credit() {
    const { hostname } = new URL(template.replace(/[{}]/g, ''));
    return /(^|\.)openstreetmap\.org$/.test(hostname) ? '© OpenStreetMap contributors' : `base map: ${hostname}`;
  }

  /** Lay tiles under a canvas: the map is flat enough for one affine transformation. */
  GPAS.basemap = (canvas, places, where) => {
    if (!places.georeference || places.layers) return;
    let frame = canvas.parentElement;
    if (!frame.classList.contains('based')) {
      frame = GPAS.element('div', 'based', null, null);
      canvas.replaceWith(frame);
      GPAS.element('div', 'tiles-below', null, frame);
      frame.append(canvas);
      GPAS.element('small', 'credit', credit(), frame);
    }
    const host = frame.firstElementChild;
    host.replaceChildren();
    Object.assign(frame.lastElementChild.style, { left: `${where.box.left}px`, top: `${where.box.bottom}px` });
    const { left, top, right, bottom } = where.box;
    Object.assign(host.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
    const [[x0, y0], [x1, y1]] = [where.low, where.high];
    const ends = [[x0, y0], [x1, y0], [x0, y1], [x1, y1]].map(([x, y]) => {
      const [px, py] = where.at(x, y);
      return { world: world(GPAS.degrees(places, x, y)), at: [px - left, py - top] };
    });
    const [o, e, n] = ends;
    const [a, b] = [e.world[0] - o.world[0], e.world[1] - o.world[1]];
    const [c, d] = [n.world[0] - o.world[0], n.world[1] - o.world[1]];
    const size = a * d - b * c;
    const row = (k) => {
      const [p, q] = [e.at[k] - o.at[k], n.at[k] - o.at[k]];
      return [(p * d - q * b) / size, (q * a - p * c) / size];
    };
    const [m, k] = [row(0), row(1)];
    const zoom = Math.min(DEEPEST, Math.max(0, Math.round(Math.log2(Math.hypot(m[0], k[0]) / SIDE))));
    const count = 2 ** zoom;
    const range = (axis) => {
      const values = ends.map((end) => Math.floor(end.world[axis] * count));
      return [Math.min(...values), Math.max(...values)];
    };
    const [[first, last], [upper, lower]] = [range(0), range(1)];
    if (!((last - first + 1) * (lower - upper + 1) <= MOST)) return;
    const scale = 1 / (count * SIDE);
    for (let i = first; i <= last; i += 1) {
      for (let j = upper; j <= lower; j += 1) {
        const [u, v] = [i / count - o.world[0], j / count - o.world[1]];
        const at = [o.at[0] + m[0] * u + m[1] * v, o.at[1] + k[0] * u + k[1] * v];
        const tile = document.createElement('img');
        Object.assign(tile, { alt: '', width: SIDE, height: SIDE, referrerPolicy: 'origin' });
        tile.style.transform = `matrix(${[m[0], k[0], m[1], k[1]].map((w) => w * scale).join()},${at.join()})`;
        tile.src = template.replace('{z}', zoom).replace('{x}', i).replace('{y}', j);
        host.append(tile);
      }
    }
  };
})();
