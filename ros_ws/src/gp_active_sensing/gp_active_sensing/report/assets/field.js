/* The field at one step: what was read so far, and what is known of each place. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const LABELS = 12; // about so many visited places are numbered

  /** What was read, and where the probe has been, up to each step. */
  GPAS.history = (run) => {
    const { steps, readings } = run;
    const upto = [];
    let total = 0;
    for (const step of steps) upto.push((total += step.r));
    const visits = [];
    steps.forEach((step, s) => {
      if (step.place !== undefined && step.value !== null) visits.push({ s, place: step.place, n: step.n });
    });
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((k) => visits.length / k <= LABELS) || 1000;
    return {
      /** {place: [mean, count]} of the readings up to a step. */
      read(s) {
        const found = new Map();
        for (let i = 0; i < upto[s]; i += 1) {
          const [mean, count] = found.get(readings.place[i]) || [0, 0];
          const more = readings.count[i];
          found.set(readings.place[i], [mean + ((readings.value[i] - mean) * more) / (count + more), count + more]);
        }
        return found;
      },
      /** Places that the limits close after a step. */
      closed(s) {
        const found = new Set();
        for (const { closed = [], opened = [] } of steps.slice(0, s + 1)) {
          closed.forEach((p) => found.add(p));
          opened.forEach((p) => found.delete(p));
        }
        return found;
      },
      /** Numbered visits up to a step: evenly spread ones, and the newest. */
      numbered(s) {
        const past = visits.filter((v) => v.s <= s);
        const last = past.length - 1;
        const first = new Map();
        past.forEach((v, i) => {
          const spread = (v.n % every === 0 || i === 0) && (last - i >= every / 2 || i === last);
          if (spread || i === last) first.set(v.place, v);
        });
        return [...first.values()];
      },
      here(s) {
        if (steps[s].place !== undefined) return steps[s].place;
        if (steps[s].home) return steps[s].path[steps[s].path.length - 1];
        const next = steps[s + 1];
        return next && next.at !== undefined ? next.at : null;
      },
    };
  };

  /** The row of the maps that is shown at a step: the step's own, or the one before it. */
  GPAS.rowOf = (maps, s) => {
    let row = 0;
    while (row + 1 < maps.steps.length && maps.steps[row + 1] <= s) row += 1;
    return row;
  };

  /** The place with the largest value, or the smallest where that is looked for. */
  GPAS.peak = (values, objective) => {
    const sign = objective === 'minimise' ? -1 : 1;
    let best = 0;
    for (let i = 1; i < values.length; i += 1) if (sign * values[i] > sign * values[best]) best = i;
    return best;
  };

  /** What is known of a place at a step, as lines for the box beside the mouse. */
  GPAS.about = (run, place, at) => {
    const { unit } = run;
    const lines = [];
    if (at.truth) lines.push(`truth ${GPAS.withUnit(at.truth[place], unit)}`);
    lines.push(`estimate ${GPAS.number(at.mean[place])} ± ${GPAS.withUnit(at.std[place], unit, 3)}`);
    const got = at.read.get(place);
    if (got) lines.push(`read ${GPAS.withUnit(got[0], unit)}${got[1] > 1 ? ` (mean of ${got[1]})` : ''}`);
    else lines.push('not read');
    if (at.closed.has(place)) lines.push('closed: it may lie beyond the limits');
    const candidate = (run.steps[at.s].candidates || []).find((c) => c[0] === place);
    if (candidate) {
      const [low, high] = [GPAS.number(candidate[1]), GPAS.number(candidate[2])];
      lines.push(`candidate, worth ${low === high ? low : `${low} to ${high}`} ${run.valueUnit}`);
    }
    return lines;
  };

  GPAS.field = (host, run, past) => {
    const { maps } = run;
    const state = (s) => {
      const row = GPAS.rowOf(maps, s);
      const truth = maps.truth ? maps.truth.row(maps.truth.rows > 1 ? row : 0) : null;
      return { s, row, truth, mean: maps.mean.row(row), std: maps.std.row(row), read: past.read(s), closed: past.closed(s) };
    };
    const draw = (run.places.shape === 'line' ? GPAS.profile : GPAS.panels)(host, run, past);
    return {
      show(s) {
        const at = state(s);
        draw(at);
        return at;
      },
    };
  };
})();
