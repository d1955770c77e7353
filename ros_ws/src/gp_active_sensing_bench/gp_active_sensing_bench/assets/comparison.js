/* The page of an experiment: a chart for each metric and configuration, a line for each policy. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const COLOURS = 8;
  const DASHES = ['', '6 4', '2 4'];
  const byId = (id) => document.getElementById(id);

  function lines(series) {
    const side = (series.length - 1) / 2;
    return series.flatMap(({ name, colour, mean, error }, k) => {
      const look = {
        name, colour: `var(--c${colour % COLOURS})`, values: mean,
        shift: 2.5 * (k - side), // whiskers beside each other
      };
      const dash = DASHES[Math.floor(colour / COLOURS) % DASHES.length];
      return [
        { ...look, kind: 'line', dash, width: 1.6, quiet: true },
        { ...look, kind: 'points', errors: error },
      ];
    });
  }

  try {
    const data = JSON.parse(byId('data').textContent);
    for (const { title, unit, x, fromZero, series } of data.charts) {
      GPAS.chart(byId('charts'), {
        title, unit, x, fromZero, xLabel: 'readings', whole: true, height: 260, series: lines(series),
        heading: (i) => `${x[i]} readings`,
      });
    }
    byId('how').hidden = !data.charts.length;
    document.documentElement.dataset.ready = 'yes';
  } catch (error) {
    byId('trouble').textContent = `The charts cannot be shown: ${error.message}`;
    byId('trouble').hidden = false;
    document.documentElement.dataset.ready = 'no';
    throw error;
  }
})();
