/* The packed numbers of the page: base64, deflate, byte planes, differences between rows. */
(function () {
  'use strict';

  const GPAS = window.GPAS;

  async function inflate(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** Undo `payload.pack`: {rows, columns, values}, row after row. */
  async function unpack(packed) {
    const { rows, columns, low, step } = packed;
    const planes = await inflate(packed.data);
    const size = rows * columns;
    if (planes.length !== 2 * size) {
      throw new Error(`expected ${2 * size} bytes of packed numbers, got ${planes.length}`);
    }
    const levels = new Uint16Array(size);
    const values = new Float64Array(size);
    for (let i = 0; i < size; i += 1) {
      const change = (planes[i] << 8) | planes[size + i];
      levels[i] = change + (i >= columns ? levels[i - columns] : 0); // wraps at 16 bits
      values[i] = low + step * levels[i];
    }
    const row = (index) => values.subarray(index * columns, (index + 1) * columns);
    return { rows, columns, values, row };
  }

  async function integers(packed) {
    const { rows, values } = await unpack(packed);
    return Uint32Array.from({ length: rows }, (_, i) => values[2 * i] * 65536 + values[2 * i + 1]);
  }

  /** The places of a map, their packed numbers replaced by numbers. */
  async function placesOf(places) {
    const [x, y, counts] = await Promise.all([
      unpack(places.x),
      unpack(places.y),
      places.counts ? integers(places.counts) : null,
    ]);
    const { shore } = places;
    let lines = null;
    if (shore) {
      const [sx, sy, sizes] = await Promise.all([unpack(shore.x), unpack(shore.y), integers(shore.counts)]);
      lines = { ...shore, x: sx.values, y: sy.values, sizes };
    }
    const n = places.names.length;
    const offsets = new Uint32Array(n + 1);
    for (let i = 0; i < n; i += 1) offsets[i + 1] = offsets[i] + (counts ? counts[i] : 1);
    return { ...places, shore: lines, n, x: x.values, y: y.values, offsets };
  }

  /** Ways of probes, their packed numbers replaced by numbers. */
  const tracksOf = (tracks) => Promise.all(tracks.map(async (track) => {
    const [x, y] = await Promise.all([unpack(track.x), unpack(track.y)]);
    return { ...track, x: x.values, y: y.values };
  }));

  /** The points of a finer map: their middles, mean and standard deviation. */
  async function finerOf(packed) {
    const { low, side, columns } = packed;
    const [cells, mean, std] = await Promise.all([integers(packed.cells), unpack(packed.mean), unpack(packed.std)]);
    const x = Float64Array.from(cells, (cell) => low[0] + side * (cell % columns));
    const y = Float64Array.from(cells, (cell) => low[1] + side * Math.floor(cell / columns));
    return { side, x, y, mean: mean.values, std: std.values };
  }

  Object.assign(GPAS, { finerOf, placesOf, tracksOf, unpack });

  /** Replace every packed array of the page's data by its numbers. */
  GPAS.decode = async (data) => {
    if (!('DecompressionStream' in window)) {
      throw new Error('this browser cannot unpack the maps (no DecompressionStream); use a newer one');
    }
    const { maps, readings } = data;
    const tracks = await tracksOf(data.tracks || []);
    const finer = data.finer ? await finerOf(data.finer) : null;
    const newest = data.steps[data.steps.length - 1].n;
    const [places, mean, std, truth, place, count, value] = await Promise.all([
      placesOf(data.places),
      unpack(maps.mean),
      unpack(maps.std),
      maps.truth ? unpack(maps.truth) : null,
      integers(readings.place),
      integers(readings.count),
      unpack(readings.value),
    ]);
    return {
      ...data,
      finer: finer && ((n) => (n === newest ? finer : null)),
      tracks,
      places,
      maps: { ...maps, mean, std, truth },
      readings: { place, count, value: value.values },
    };
  };
})();
