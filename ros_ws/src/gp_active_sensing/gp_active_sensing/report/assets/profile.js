/* The field along a line: truth, estimate, band of two standard deviations, readings. */
(function () {
  'use strict';

  const GPAS = window.GPAS;

  GPAS.profile = (host, run, past) => {
    const { places, maps, unit, steps } = run;
    host.classList.add('single');
    const along = places[places.axis];
    const order = Array.from({ length: places.n }, (_, i) => i).sort((a, b) => along[a] - along[b]);
    const last = maps.mean.rows - 1;
    const reach = [];
    for (const p of order) {
      const [mean, sd] = [maps.mean.row(last)[p], maps.std.row(last)[p]];
      reach.push(mean - 2 * sd, mean + 2 * sd);
    }
    const [low, high] = [Math.min(maps.range[0], ...reach), Math.max(maps.range[1], ...reach)];
    const margin = 0.06 * (high - low);
    const next = steps.some((s) => s.others) ? 'could be next (the best ones)' : 'could be next';
    let chart = null;
    return (now) => {
      const numbers = new Map(past.numbered(now.s).map((v) => [v.place, v.n]));
      const candidates = new Set((steps[now.s].candidates || []).map((c) => c[0]));
      const mean = order.map((p) => now.mean[p]);
      const band = (k) => order.map((p) => now.mean[p] + k * now.std[p]);
      const series = [
        { kind: 'band', name: '± 2 sd', low: band(-2), high: band(2), colour: 'var(--second)' },
        { kind: 'line', name: 'estimate', values: mean, colour: 'var(--second)' },
      ];
      if (now.truth) {
        series.push({ kind: 'line', name: 'truth', values: order.map((p) => now.truth[p]), colour: 'var(--ink)', width: 1.2 });
      }
      if (candidates.size && candidates.size < places.n / 2) {
        const foot = order.map((p) => (candidates.has(p) ? low - margin / 2 : null));
        series.push({ kind: 'points', name: next, values: foot, colour: 'var(--third)', size: 2.5 });
      }
      series.push({
        kind: 'points', name: 'read', colour: 'var(--accent)', size: 3.5,
        values: order.map((p) => (now.read.has(p) ? now.read.get(p)[0] : null)),
        labels: order.map((p) => (numbers.has(p) ? String(numbers.get(p)) : '')),
      });
      if (run.objective && now.truth) {
        const best = GPAS.peak(now.truth, run.objective);
        series.push({
          kind: 'points', name: run.objective === 'minimise' ? 'lowest' : 'highest', colour: 'var(--ink)', size: 4.5,
          values: order.map((p) => (p === best ? now.truth[p] : null)),
        });
      }
      const here = past.here(now.s);
      const cursor = here === null ? null : order.indexOf(here);
      if (chart) {
        chart.setCursor(cursor);
        chart.update({ series });
        return;
      }
      const title = 'Field along the line';
      const name = unit ? `${title}: ${run.quantity} [${unit}]` : `${title}: ${run.quantity}`;
      chart = GPAS.chart(host, {
        title: name, x: order.map((p) => along[p]), xLabel: `${places.axis} [m]`, series, unit, cursor,
        range: [low - margin, high + margin], height: 330,
        heading: (i) => places.names[order[i]],
      });
    };
  };
})();
