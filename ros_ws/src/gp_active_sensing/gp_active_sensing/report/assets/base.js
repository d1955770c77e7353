/* What all scripts of the page share: elements, numbers, ticks, colours, the box beside the mouse. */
(function () {
  'use strict';

  const GPAS = (window.GPAS = {});
  const SVG = 'http://www.w3.org/2000/svg';

  /** Make an element; text is set as text, never as markup. */
  GPAS.element = (tag, className, text, parent) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined && text !== null) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };

  GPAS.svg = (tag, attributes, parent, text) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };

  /** A number as text: about `digits` significant digits, a true minus sign. */
  GPAS.number = (value, digits = 4) => {
    if (value === null || value === undefined || Number.isNaN(value)) return '–';
    const size = Math.abs(value);
    const plain = size === 0 || (size >= 1e-4 && size < 1e7);
    const short = Number(value.toPrecision(digits));
    const text = plain ? String(short) : short.toExponential().replace('e+', 'e');
    return text.replaceAll('-', '−');
  };

  GPAS.withUnit = (value, unit, digits) => GPAS.number(value, digits) + (unit ? ` ${unit}` : '');

  /** A large number as a label: 2e5. */
  const exponential = (value) => (value === 0 ? '0' : Number(value.toPrecision(3)).toExponential().replace('e+', 'e').replaceAll('-', '−'));

  /** Round values between two ends, about `count` of them, with their labels. */
  GPAS.ticks = (low, high, count, whole = false) => {
    const span = high - low;
    if (!(span > 0)) return [{ value: low, label: GPAS.number(low) }];
    const rough = span / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    let step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
    if (whole) step = Math.max(1, Math.round(step));
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i += 1) {
      const value = i * step;
      const large = Math.abs(value) >= 1e6 || span >= 1e5 || decimals > 6;
      const label = large ? exponential(value) : value.toFixed(decimals).replace('-', '−');
      found.push({ value, label: Number(label) === 0 ? '0' : label });
    }
    return found;
  };

  /** The colour of a value between low and high; what lies outside gets the end colours. */
  GPAS.colourOf = (table, low, high, value) => {
    const share = (value - low) / (high - low || 1);
    const index = Math.round(share * (table.length - 1));
    return table[Math.min(table.length - 1, Math.max(0, index))];
  };

  GPAS.variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  GPAS.legend = (entries, parent) => {
    const legend = GPAS.element('div', 'legend', null, parent);
    for (const { name, colour, mark } of entries) {
      const entry = GPAS.element('span', '', null, legend);
      const swatch = GPAS.element('i', mark || '', null, entry);
      if (mark === 'ring' || mark === 'dashed') swatch.style.borderColor = colour;
      else if (mark !== 'hatch') swatch.style.background = colour;
      entry.append(name);
    }
    return legend;
  };

  /** A box with a heading and lines, kept inside its figure. */
  GPAS.tip = (figure) => {
    const box = GPAS.element('div', 'tip', null, figure);
    box.hidden = true;
    return {
      show(x, y, heading, lines) {
        box.replaceChildren();
        GPAS.element('b', '', heading, box);
        for (const line of lines) GPAS.element('div', '', line, box);
        box.hidden = false;
        const room = figure.clientWidth - box.offsetWidth - 4;
        const beside = x + 14 > room ? x - box.offsetWidth - 14 : x + 14;
        box.style.left = `${Math.max(4, Math.min(beside, room))}px`;
        box.style.top = `${Math.max(4, y - box.offsetHeight - 10)}px`;
      },
      hide() {
        box.hidden = true;
      },
    };
  };
})();
