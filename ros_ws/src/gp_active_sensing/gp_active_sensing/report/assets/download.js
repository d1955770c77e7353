/* The map that is shown as a file, made in the page: nothing is asked of a network. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const POWERS = []; // of the georeference, as the page's maker has them
  for (let i = 0; i < 4; i += 1) for (let j = 0; j < 4 - i; j += 1) POWERS.push([i, j]);

  /** Longitude and latitude of a position, null where the map does not know where it lies. */
  function degrees(places, x, y) {
    const fit = places.georeference;
    if (!fit) return null;
    const [u, v] = [(x - fit.middle[0]) / fit.half, (y - fit.middle[1]) / fit.half];
    const sum = (terms) => terms.reduce((total, c, k) => total + c * u ** POWERS[k][0] * v ** POWERS[k][1], 0);
    return [Number(sum(fit.longitude).toFixed(8)), Number(sum(fit.latitude).toFixed(8))];
  }

  GPAS.degrees = degrees;

  /** The middle of a place: of a road half of its length. */
  function middle(places, i) {
    const [first, end] = [places.offsets[i], places.offsets[i + 1]];
    let total = 0;
    for (let j = first + 1; j < end; j += 1) total += Math.hypot(places.x[j] - places.x[j - 1], places.y[j] - places.y[j - 1]);
    let left = total / 2;
    for (let j = first + 1; j < end; j += 1) {
      const part = Math.hypot(places.x[j] - places.x[j - 1], places.y[j] - places.y[j - 1]);
      if (part > 0 && left <= part) {
        return [places.x[j - 1] + (left / part) * (places.x[j] - places.x[j - 1]), places.y[j - 1] + (left / part) * (places.y[j] - places.y[j - 1])];
      }
      left -= part;
    }
    return [places.x[first], places.y[first]];
  }

  const short = (value) => (value === null ? null : Number(value.toPrecision(6)));
  const metres = (value) => Number(value.toFixed(2));

  /** What is known of each place at a step. */
  function rows(run, at) {
    const { places } = run;
    return Array.from({ length: places.n }, (_, i) => {
      const [x, y] = middle(places, i);
      const got = at.read.get(i);
      const lonlat = degrees(places, x, y);
      return {
        place: places.names[i], x: metres(x), y: metres(y), ...(places.z ? { z: places.z[i] } : {}),
        ...(lonlat ? { longitude: lonlat[0], latitude: lonlat[1] } : {}),
        mean: short(at.mean[i]), std: short(at.std[i]),
        readings: got ? got[1] : 0, value: got ? short(got[0]) : null,
      };
    });
  }

  function cell(value) {
    if (value === null) return '';
    const formula = typeof value === 'string' && /^\s*[=+\-@]./.test(value) && Number.isNaN(Number(value));
    const text = formula ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  GPAS.csv = (run, at) => {
    const all = rows(run, at);
    return [Object.keys(all[0]), ...all.map((row) => Object.values(row))].map((line) => line.map(cell).join(',')).join('\n') + '\n';
  };

  GPAS.geojson = (run, at) => {
    const { places } = run;
    const point = (x, y) => degrees(places, x, y) || [metres(x), metres(y)];
    const geometry = (i) => {
      const [first, end] = [places.offsets[i], places.offsets[i + 1]];
      const line = [];
      for (let j = first; j < end; j += 1) line.push(point(places.x[j], places.y[j]));
      if (places.shape === 'roads' && line.length > 1) return { type: 'LineString', coordinates: line };
      if (places.shape !== 'cells') return { type: 'Point', coordinates: line[0] };
      const [x, y, half] = [places.x[first], places.y[first], places.side / 2];
      const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]].map(([a, b]) => point(x + a * half, y + b * half));
      return { type: 'Polygon', coordinates: [corners] };
    };
    const known = Boolean(places.georeference);
    const header = {
      schema: 1, name: run.name, crs: known ? 'EPSG:4326' : 'local', frame: run.frame,
      units: known ? 'degree' : 'metre', quantity: run.quantity, unit: run.unitSaid,
    };
    const features = rows(run, at).map((properties, i) => ({ type: 'Feature', id: properties.place, properties, geometry: geometry(i) }));
    return JSON.stringify({ type: 'FeatureCollection', gp_active_sensing: header, features });
  };

  /** Two buttons; `now()` gives the map that is shown and the number of its step. */
  GPAS.downloads = (host, run, now) => {
    GPAS.element('span', '', 'Save this map:', host);
    for (const [word, kind, suffix] of [['CSV', 'csv', 'csv'], ['GeoJSON', 'geojson', 'geojson']]) {
      const button = GPAS.element('button', '', word, host);
      button.type = 'button';
      button.addEventListener('click', () => {
        const { at, number } = now();
        const address = URL.createObjectURL(new Blob([GPAS[kind](run, at)], { type: kind === 'csv' ? 'text/csv' : 'application/geo+json' }));
        const link = GPAS.element('a');
        link.href = address;
        const name = (run.name || 'map').replace(/[^\w.-]+/g, '_').slice(0, 60);
        link.download = `${name}-${run.kind === 'stages' ? 'stage' : 'reading'}${number}.${suffix}`;
        link.click();
        URL.revokeObjectURL(address);
      });
    }
  };
})();
