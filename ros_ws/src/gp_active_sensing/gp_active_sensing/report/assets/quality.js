/* How good a map is whose truth nobody knows: what the readings say of each other. */
(function () {
  'use strict';

  const GPAS = window.GPAS;

  GPAS.quality = (host, run) => {
    const { quality, places } = run;
    GPAS.element('h2', '', 'How good is the map?', host);
    const all = `Each of the ${quality.off.length} places read was predicted from the readings of the others. `
      + `The error is ${GPAS.withUnit(quality.error, run.unit, 3)} (root mean square). `
      + `${quality.half} % of the readings lie in the 50 % intervals of the prediction, ${quality.most} % in the 90 % intervals. `;
    const text = GPAS.element('p', '', all, host);
    GPAS.element('span', '', quality.verdict, text);
    const charts = GPAS.element('div', 'narrow', null, host);
    const x = quality.off.map((_, i) => i + 1);
    const across = (v) => x.map(() => v);
    const shown = quality.off.map((v) => Math.max(-6, Math.min(6, v)));
    const most = Math.max(3, ...shown.map(Math.abs)) + 0.3;
    GPAS.chart(charts, {
      title: 'Reading minus prediction from the others [standard deviations]', x, xLabel: 'place, in the order of reading', whole: true,
      heading: (i) => places.names[quality.places[i]], range: [-most, most],
      series: [
        { kind: 'band', name: '90 %', low: across(-1.645), high: across(1.645), colour: 'var(--second)', opacity: 0.13, quiet: true },
        { kind: 'band', name: '50 %', low: across(-0.674), high: across(0.674), colour: 'var(--second)', opacity: 0.2, quiet: true },
        { kind: 'points', name: 'off by', values: shown, colour: 'var(--accent)', size: shown.length > 150 ? 2 : 3 },
      ],
      legend: [
        { name: 'place', colour: 'var(--accent)', mark: 'dot' },
        { name: '50 % and 90 % intervals', colour: 'var(--second)', mark: 'faded' },
      ],
    });
    GPAS.chart(charts, {
      title: 'Calibration: places within an interval [%]', x: quality.shares, xLabel: 'probability of the interval [%]', unit: '%', range: [0, 102],
      heading: (i) => `${quality.shares[i]} % interval`,
      series: [
        { kind: 'line', name: 'ideal', values: quality.shares, colour: 'var(--soft)', dash: '5 4', width: 1.2 },
        { kind: 'line', name: 'this map', values: quality.inside, colour: 'var(--accent)' },
      ],
    });
  };
})();
