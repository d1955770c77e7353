/* Bars in rows: the values of the candidates, the belief at one step. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const SHOWN = 12;
  const { element } = GPAS;

  function row(parent, name, figure, chosen) {
    const label = element('span', chosen ? 'name chosen' : 'name', name, parent);
    label.title = name;
    const track = element('span', 'track', null, parent);
    element('span', 'figure', figure, parent);
    return track;
  }

  /** A bar is wide enough to be seen, whatever it stands for. */
  function bar(track, from, to, colour) {
    const made = element('i', '', null, track);
    made.style.left = `calc((100% - 5px) * ${Math.max(0, from).toFixed(4)})`;
    made.style.width = `${(100 * Math.max(0, to - from)).toFixed(2)}%`;
    if (colour) made.style.background = colour;
  }

  /** The bounds on each candidate's value, best first; `others` were left out of the page. */
  GPAS.candidates = (host, candidates, chosen, others, names, unit) => {
    host.replaceChildren();
    if (!candidates || candidates.length < 2) return;
    const first = candidates.slice(0, SHOWN);
    const mine = candidates.find((c) => c[0] === chosen);
    if (mine && !first.includes(mine)) first[first.length - 1] = mine;
    const low = Math.min(...first.map((c) => c[1]));
    const high = Math.max(...first.map((c) => c[2]));
    const span = high - low || 1;
    const margin = 0.06 * span;
    const share = (v) => (v - low + margin) / (span + 2 * margin);
    const decimals = Math.min(6, Math.max(2, 1 - Math.floor(Math.log10(span))));
    const large = first.some((c) => Math.abs(c[2]) >= 1e6);
    const text = (v) => (large ? GPAS.number(v, 5) : v.toFixed(decimals).replace('-', '−'));
    const exact = first.every((c) => c[2] - c[1] < 1e-9);
    const rows = element('div', 'rows', null, host);
    for (const [place, lower, upper] of first) {
      const [a, b] = [text(lower), text(upper)];
      const track = row(rows, names[place], a === b ? a : `${a} to ${b}`, place === chosen);
      bar(track, share(lower), share(upper));
      if (mine && !exact) element('u', '', null, track).style.left = `calc((100% - 5px) * ${share(mine[1]).toFixed(4)})`;
    }
    const more = candidates.length - first.length + others;
    const hint = mine && !exact ? ` Dashed: the least the chosen one is worth; a bar to its right could be better.` : '';
    const rest = more ? ` … and ${more} more place${more > 1 ? 's' : ''}.` : '';
    element('p', 'more', `Value of going there first${unit ? ` [${unit}]` : ''}.${hint}${rest}`, host);
  };

  /** The weights of the length-scales, with a mark where each began. */
  GPAS.weights = (host, labels, weights, prior, colours, hint = true) => {
    host.replaceChildren();
    const rows = element('div', 'rows', null, host);
    const best = weights.indexOf(Math.max(...weights));
    labels.forEach((label, i) => {
      const percent = 100 * weights[i];
      const figure = percent > 0 && percent < 0.5 ? '< 1 %' : `${percent.toFixed(0)} %`;
      const track = row(rows, label, figure, i === best);
      if (weights[i] > 0) bar(track, 0, weights[i], colours[i]);
      element('s', '', null, track).style.left = `${(100 * prior[i]).toFixed(2)}%`;
    });
    if (hint) element('p', 'more', 'The mark in each bar is the weight before the first reading.', host);
  };
})();
