/* The page of a model: belief over kernels, how it came about, predictions, residuals. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const { element } = GPAS;
  const COLOURS = 8;
  const byId = (id) => document.getElementById(id);
  const colour = (k) => `var(--c${k % COLOURS})`;
  function percent(share) {
    if (share >= 0.0995 || share === 0) return `${(100 * share).toFixed(0)} %`;
    return share < 0.0005 ? '< 0.1 %' : `${(100 * share).toFixed(1)} %`;
  }
  const plural = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;
  const GREY = 'var(--soft)';
  const LONGEST = 36; // of a name below an axis
  const short = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

  /** A bar of q* with a whisker of its sampling error, and below it a thin one of softmax(L). */
  function bars({ names, q, error, softmax, others, rest, restSoftmax }) {
    GPAS.legend([
      { name: 'q*, belief', colour: 'var(--second)' },
      { name: 'softmax of the local ELBOs', colour: 'var(--accent)' },
    ], byId('belief-legend'));
    const rows = element('div', 'rows', null, byId('belief-rows'));
    const row = (name, mine, its, beside) => {
      element('span', 'name', name, rows).title = name;
      const track = element('span', 'track two', null, rows);
      element('i', 'first', null, track).style.width = `${(100 * mine).toFixed(2)}%`;
      element('i', 'second', null, track).style.width = `${(100 * beside).toFixed(2)}%`;
      if (its) {
        const whisker = element('u', 'whisker', null, track);
        whisker.style.left = `${(100 * Math.max(0, mine - its)).toFixed(2)}%`;
        whisker.style.width = `${(100 * Math.min(1 - mine + its, 2 * its)).toFixed(2)}%`;
      }
      element('span', 'figure', `${percent(mine)} · ${percent(beside)}`, rows);
    };
    names.forEach((name, k) => row(name, q[k], error[k], softmax[k]));
    if (others) row(`${plural(others, 'other')}`, rest, null, restSoftmax);
    element('p', 'more', 'Whiskers are one standard error of the samples of g. The figures are q* and softmax.', byId('belief-rows'));
  }

  function matrix(found) {
    byId('correlations').hidden = !found;
    byId('beliefs').classList.toggle('alone', !found);
    if (!found) return;
    const most = GPAS.matrix(byId('matrix'), found.names, found.values);
    const more = found.others ? ` The ${found.names.length} most probable of ${found.names.length + found.others}.` : '';
    byId('correlations-text').textContent =
      `Of g under q(g): orange where two rise together, blue where one rises as the other falls; the strongest is ${most.toFixed(2)}.${more}`;
  }

  function history(found, traces) {
    const host = byId('history');
    byId('history-title').hidden = !found && !traces;
    if (found) {
      const rest = found.others ? ` Dotted: all ${found.others} others together.` : '';
      const screened = found.screened ? ` From the screening, with ${found.screened} inducing points.` : '';
      byId('history-text').textContent = `The kernels that ever were among the most probable ones.${rest}${screened}`;
      const x = found.rows;
      for (const [title, key, others] of [
        ['Belief q* against rows used', 'q', found.rest],
        ['Softmax(L) against rows used', 'softmax', found.restSoftmax],
      ]) {
        const series = found.lines.map((line) => ({
          kind: 'line', name: line.name, values: line[key], colour: colour(line.colour),
        }));
        const marks = series.map((s) => ({ ...s, kind: 'points', size: 2.4, quiet: true }));
        if (found.others) series.push({ kind: 'line', name: 'others', values: others, colour: GREY, dash: '2 4' });
        GPAS.chart(host, {
          title, x, xLabel: 'rows', whole: true, range: [0, 1.02], height: 260,
          series: [...series, ...marks], heading: (i) => `${GPAS.number(x[i], 8)} rows`,
        });
      }
    } else byId('history-text').textContent = 'The belief was recorded once, with all rows.';
    if (traces) {
      if (traces.gaussian) {
        byId('history-text').textContent +=
          ' Hyper-parameters are points at first and believed in at the end of each stage; the two bounds are not of one kind, so that a trace may fall there.';
      }
      const faint = traces.faint.map((values) => ({ kind: 'line', name: '', values, colour: 'var(--line)', width: 1, quiet: true }));
      const series = traces.lines.map((line) => ({
        kind: 'line', name: line.name, values: line.values, colour: colour(line.colour), width: 1.5,
      }));
      GPAS.chart(host, {
        title: 'Local ELBO a row, as it rose [nat]', x: traces.x, xLabel: 'iteration', whole: true,
        range: traces.range, height: 260, series: [...faint, ...series], heading: (i) => `iteration ${traces.x[i]}`,
      });
    }
  }

  /** Mean, band of two standard deviations, and what was read. */
  function curve(host, spec, output, points, height) {
    const band = (k) => spec.mean.map((m, i) => (m === null || spec.std[i] === null ? null : m + k * spec.std[i]));
    const series = [
      { kind: 'band', name: '± 2 sd', low: band(-2), high: band(2), colour: 'var(--second)' },
      { kind: 'line', name: 'mean', values: spec.mean, colour: 'var(--second)' },
    ];
    const others = Object.entries(spec.others).map(([name, value]) => `${short(name)} ${GPAS.number(value, 3)}`);
    const at = others.length ? ` (at ${others.join(', ')})` : '';
    if (points) series.push({ kind: 'points', name: 'rows', colour: 'var(--accent)', size: 1.8, opacity: 0.6, xs: points.x, values: points.y });
    GPAS.chart(host, {
      title: `${output} along ${spec.along}`, x: spec.x, xLabel: short(spec.along) + (at.length > 2 * LONGEST ? '' : at), height, series,
      heading: (i) => `${spec.along} ${GPAS.number(spec.x[i])}`,
    });
  }

  function field(data) {
    const { map, curves, output, check, colours } = data;
    if (map) {
      const describe = (i) => [`mean ${GPAS.number(map.mean[i])}`, `standard deviation ${GPAS.number(map.std[i], 3)}`];
      const of = (values) => [Math.min(...values), Math.max(...values)];
      const shared = { ...map, names: map.names.map(short), describe };
      GPAS.heat(byId('field'), { ...shared, title: 'Mean', values: map.mean, table: colours.values, range: of(map.mean), label: output });
      GPAS.heat(byId('field'), {
        ...shared, title: 'Standard deviation of the noise-free field', values: map.std, table: colours.doubt,
        range: [0, of(map.std)[1]], label: `standard deviation of ${output}`,
      });
    }
    const single = curves.length === 1;
    byId('curves').classList.toggle('one', single);
    for (const spec of curves) curve(byId('curves'), spec, output, single && check ? check.points : null, single ? 340 : 230);
  }

  function scatter(host, title, { x, y }, xLabel, name, more, height = 280) {
    GPAS.chart(host, {
      title, x, xLabel, height,
      series: [{ kind: 'points', name, values: y, colour: 'var(--second)', size: 1.8, opacity: 0.55 }, ...more],
    });
  }

  function check(found, output) {
    byId('check').hidden = !found;
    if (!found) return;
    const { fit, histogram, quantiles, against } = found;
    scatter(byId('fit'), `Observed against predicted ${output}`, fit, 'predicted', 'observed', [
      { kind: 'line', name: 'equal', values: fit.x, colour: GREY, dash: '5 4', width: 1.2 },
    ]);
    GPAS.chart(byId('fit'), {
      title: 'Residuals [predicted sd]', x: histogram.x, xLabel: histogram.beyond ? 'residual, those farther out in the end bars' : 'residual', height: 280, fromZero: true,
      series: [
        { kind: 'bars', name: 'share of rows', values: histogram.shares, colour: 'var(--second)' },
        { kind: 'line', name: 'normal', values: histogram.normal, colour: 'var(--accent)' },
      ],
      legend: [{ name: 'share of rows', colour: 'var(--second)' }, { name: 'as normal ones would be', colour: 'var(--accent)', mark: 'stroke' }],
    });
    scatter(byId('fit'), 'Residuals against those of a normal', quantiles, 'normal quantile', 'residual', [
      { kind: 'line', name: 'equal', values: quantiles.x, colour: GREY, dash: '5 4', width: 1.2 },
    ]);
    for (const { name, x, y, mean, low, high } of against) {
      const more = mean.length ? [
        { kind: 'band', name: '± 2 standard errors', low, high, colour: 'var(--accent)', opacity: 0.3 },
        { kind: 'line', name: 'mean along it', values: mean, colour: 'var(--accent)' },
      ] : [];
      scatter(byId('fit'), `Residuals against ${name}`, { x, y }, short(name), 'residual', more);
    }
    byId('fit').append(byId('coverage'));
  }

  try {
    const data = JSON.parse(byId('data').textContent);
    bars(data.belief);
    matrix(data.correlations);
    history(data.history, data.traces);
    field(data);
    check(data.check, data.output);
    document.documentElement.dataset.ready = 'yes';
  } catch (error) {
    byId('trouble').textContent = `The charts cannot be shown: ${error.message}`;
    byId('trouble').hidden = false;
    document.documentElement.dataset.ready = 'no';
    throw error;
  }
})();
