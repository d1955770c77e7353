/* The panels of a map: truth, estimate, uncertainty, with what was read, driven and planned. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const RECENT = 20; // steps whose way is drawn stronger
  const BEST = 15; // places that could be next, of a search
  const PLANNED = 'planned next';

  function ring(pen, x, y, radius, colour, width) {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }

  function dot(pen, x, y, radius, colour) {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fillStyle = colour;
    pen.fill();
  }

  function diamond(pen, x, y, radius, colour, around) {
    pen.beginPath();
    for (const [dx, dy] of [[0, -1], [1, 0], [0, 1], [-1, 0]]) pen.lineTo(x + radius * dx, y + radius * dy);
    pen.closePath();
    pen.lineJoin = 'miter';
    pen.lineWidth = 3.5;
    pen.strokeStyle = around;
    pen.stroke();
    pen.fillStyle = colour;
    pen.fill();
  }

  const TEAM = ['var(--second)', 'var(--third)', 'var(--ink)', 'var(--accent)'];

  GPAS.panels = (host, run, past) => {
    const { places, steps, colours, maps, unit } = run;
    const team = run.probes || [];
    const colourOf = (probe) => TEAM[Math.max(0, team.indexOf(probe)) % TEAM.length];
    let at = null;
    let hover = null;
    const staged = run.kind === 'stages';

    /** A way along places: streets as they run, cells from middle to middle. */
    function way(pen, where, trace, list, from) {
      pen.beginPath();
      let last = from;
      for (const p of list) {
        if (places.shape === 'roads') trace(pen, p);
        else {
          const [x, y] = [where.middle[2 * p], where.middle[2 * p + 1]];
          const { layers } = run.places; // a line from layer to layer would lead nowhere
          const apart = layers && last !== null && last !== undefined && layers.of[last] !== layers.of[p];
          if (last === null || last === undefined || apart) pen.moveTo(x, y);
          else if (last === from) {
            pen.moveTo(where.middle[2 * last], where.middle[2 * last + 1]);
            pen.lineTo(x, y);
          } else pen.lineTo(x, y);
        }
        last = p;
      }
    }

    /** The poses of a probe from one step to another; false where none are known. */
    function poses(pen, where, probe, first, end) {
      const track = run.tracks && run.tracks.find((t) => t.probe === (probe || ''));
      if (!track) return false;
      const [from, upto] = [Math.max(0, track.upto[first - 1] - 1), track.upto[Math.min(end, track.upto.length) - 1]];
      pen.beginPath();
      for (let i = from; i < upto; i += 1) {
        const [x, y] = where.at(track.x[i], track.y[i]);
        if (i === from) pen.moveTo(x, y);
        else pen.lineTo(x, y);
      }
      return true;
    }

    /** The way planned through places from one step to another; false where there is none. */
    function planned(pen, where, trace, probe, first, end) {
      const list = [];
      let from = null;
      for (let s = first; s < end; s += 1) {
        if (steps[s].probe !== probe || !steps[s].path) continue;
        if (!list.length) from = steps[s].at ?? null;
        list.push(...steps[s].path);
      }
      if (!list.length) return false;
      way(pen, where, trace, list, from);
      return true;
    }

    /** The way driven up to now, its newest part stronger. */
    function driven(pen, where, trace) {
      pen.lineJoin = 'round';
      pen.setLineDash([]);
      const recent = Math.max(1, at.s - RECENT + 1);
      for (const [first, end, thick] of [[1, recent, 1.6], [recent, at.s + 1, 2.4]]) {
        for (const probe of team.length ? team : [undefined]) {
          if (end <= first) continue;
          if (!poses(pen, where, probe, first, end) && !planned(pen, where, trace, probe, first, end)) continue;
          pen.strokeStyle = GPAS.variable('--card');
          pen.lineWidth = thick + 1.8;
          pen.stroke();
          pen.strokeStyle = GPAS.variable(colourOf(probe).slice(4, -1));
          pen.lineWidth = thick;
          pen.stroke();
        }
      }
      const plan = steps[at.s].plan || [];
      if (plan.length) {
        way(pen, where, trace, plan, steps[at.s].place);
        pen.lineWidth = 4;
        pen.strokeStyle = GPAS.variable('--card');
        pen.stroke();
        pen.setLineDash([5, 4]);
        pen.lineWidth = 2.4;
        pen.strokeStyle = GPAS.variable('--accent');
        pen.stroke();
        pen.setLineDash([]);
      }
      pen.font = '600 11px system-ui, "Liberation Sans", sans-serif';
      pen.lineWidth = 3;
      pen.strokeStyle = GPAS.variable('--card');
      const said = []; // a number that would lie on a newer one is left out
      for (const { place, n } of past.numbered(at.s).reverse()) {
        const [x, y] = [where.middle[2 * place], where.middle[2 * place + 1]];
        dot(pen, x, y, 3, GPAS.variable('--ink'));
        pen.lineWidth = 3;
        pen.strokeStyle = GPAS.variable('--card');
        const right = x + 4 + pen.measureText(n).width < where.width;
        pen.textAlign = right ? 'left' : 'right';
        const low = places.layers ? 13 : -4; // above a place may be the label of its layer
        const [tx, ty] = [right ? x + 4 : x - 4, Math.max(10, y + low)];
        const wide = pen.measureText(n).width;
        const [from, to] = right ? [tx, tx + wide] : [tx - wide, tx];
        if (said.some(([first, end, sy]) => from < end + 5 && to > first - 5 && Math.abs(sy - ty) < 11)) continue;
        said.push([from, to, ty]);
        pen.strokeText(n, tx, ty);
        pen.fillStyle = GPAS.variable('--ink');
        pen.fillText(n, tx, ty);
      }
    }

    function read(pen, where) {
      const small = Math.max(1.8, Math.min(3, where.width / (9 * Math.sqrt(places.n))));
      for (const p of at.read.keys()) {
        const [x, y] = [where.middle[2 * p], where.middle[2 * p + 1]];
        dot(pen, x, y, small + 1, GPAS.variable('--card'));
        dot(pen, x, y, small, GPAS.variable('--accent'));
      }
      // A search may go anywhere: only the best of all places, which come first.
      const candidates = (steps[at.s].candidates || []).slice(0, run.objective ? BEST : undefined);
      const radius = candidates.length > 30 ? 2.5 : 5.5;
      for (const [p] of candidates) {
        const [x, y] = [where.middle[2 * p], where.middle[2 * p + 1]];
        ring(pen, x, y, radius, GPAS.variable('--card'), 3.5);
        ring(pen, x, y, radius, GPAS.variable('--second'), 1.8);
      }
    }

    /** Where the robots of a mission under way are. */
    function robots(pen, where) {
      pen.font = '600 11px system-ui, "Liberation Sans", sans-serif';
      for (const { name, x, y, quiet } of run.robots || []) {
        const [px, py] = where.at(x, y);
        diamond(pen, px, py, 7, GPAS.variable(quiet ? '--soft' : '--robot'), GPAS.variable('--card'));
        if (!name) continue;
        const left = px > 0.75 * where.width;
        pen.textAlign = left ? 'right' : 'left';
        const side = px + (left ? -11 : 11);
        pen.lineWidth = 3;
        pen.strokeStyle = GPAS.variable('--card');
        pen.strokeText(name, side, py + 4);
        pen.fillStyle = GPAS.variable('--ink');
        pen.fillText(name, side, py + 4);
      }
    }

    const over = (what, peak) => (pen, where, trace) => {
      if (!at) return;
      pen.lineCap = 'round';
      if (what) GPAS.hatch(pen, where, trace, places, at.closed);
      if (what) what(pen, where, trace);
      if (peak && run.objective) {
        const p = GPAS.peak(peak(at), run.objective);
        diamond(pen, where.middle[2 * p], where.middle[2 * p + 1], 5.5, GPAS.variable('--ink'), GPAS.variable('--card'));
      }
      if (what && at.s === steps.length - 1) robots(pen, where);
      const here = past.here(at.s);
      for (const [p, radius] of [[what ? here : null, 6.5], [hover, 9]]) {
        if (p === null || p === undefined) continue;
        const [x, y] = [where.middle[2 * p], where.middle[2 * p + 1]];
        ring(pen, x, y, radius, GPAS.variable('--card'), 5);
        ring(pen, x, y, radius, GPAS.variable('--ink'), 2.5);
      }
    };

    const label = unit ? `${run.quantity} [${unit}]` : run.quantity;
    const doubt = `standard deviation${unit ? ` [${unit}]` : ''}`;
    const made = [];
    function panel(title, aria, what, table, range, text, legend, peak) {
      const figure = GPAS.element('figure', '', null, host);
      GPAS.element('h3', '', title, figure);
      const entries = GPAS.legend(legend, figure);
      const map = GPAS.map(figure, places, aria, over(what, peak));
      const mark = GPAS.ramp(figure, table, range, text);
      const tip = GPAS.tip(figure);
      const point = (event) => {
        const box = map.canvas.getBoundingClientRect();
        const frame = figure.getBoundingClientRect();
        const place = map.at(event.clientX - box.left, event.clientY - box.top);
        if (place === null) tip.hide();
        else tip.show(event.clientX - frame.left, event.clientY - frame.top, places.names[place], GPAS.about(run, place, at));
        if (place !== hover) {
          hover = place;
          for (const other of made) other.map.draw();
        }
      };
      map.canvas.addEventListener('pointermove', point);
      map.canvas.addEventListener('pointerdown', point);
      map.canvas.addEventListener('pointerleave', () => {
        hover = null;
        tip.hide();
        for (const other of made) other.map.draw();
      });
      made.push({ figure, map, table, range, mark, planned: [...entries.children][legend.findIndex((e) => e.name === PLANNED)] });
    }

    const some = (s) => s.others || (run.objective && (s.candidates || []).length > BEST);
    const next = steps.some(some) ? 'could have been next (the best ones)' : 'could have been next';
    const moving = run.robots ? [{ name: 'robot', colour: 'var(--robot)', mark: 'diamond' }] : [];
    GPAS.redraw = () => made.forEach(({ map }) => map.draw());
    const limited = steps.some((s) => (s.closed || []).length);
    const shut = limited ? [{ name: 'closed by the limits', colour: '', mark: 'hatch' }] : [];
    const here = { name: 'here', colour: 'var(--ink)', mark: 'ring' };
    const end = run.objective === 'minimise' ? 'lowest' : 'highest';
    const sought = run.objective ? [{ name: end, colour: 'var(--ink)', mark: 'diamond' }] : [];
    if (maps.truth) {
      panel(maps.truth.rows > 1 ? 'Truth at this time' : 'Truth', 'Map of the true field', null, colours.values, maps.range, label, sought, (now) => now.truth);
    }
    panel('Estimate', 'Map of the estimate', read, colours.values, maps.range, label, [
      { name: 'read', colour: 'var(--accent)', mark: 'dot' },
      ...(steps.some((s) => s.candidates && s.candidates.length) ? [{ name: next, colour: 'var(--second)', mark: 'ring' }] : []),
      ...shut,
      ...(staged ? [here] : []),
      ...moving,
      ...sought,
    ], (now) => now.mean);
    panel('Uncertainty', 'Map of the standard deviation, with the way driven', driven, colours.doubt, maps.doubt, doubt, staged ? [
      ...(team.length ? team : ['driven']).map((name) => ({ name, colour: colourOf(name), mark: 'stroke' })),
      ...(steps.some((s) => (s.plan || []).length) ? [{ name: PLANNED, colour: 'var(--accent)', mark: 'dashed' }] : []),
      ...shut,
      here,
      ...moving,
    ] : [...shut, ...moving]);
    // The colours of the uncertainty are those of all stages, or of the one that is shown.
    const last = made[made.length - 1];
    /** A switch in a figure, which stays as it is in the panels after these. */
    function choice(key, text, figure) {
      const button = GPAS.element('button', 'choice', text, figure);
      button.type = 'button';
      button.setAttribute('aria-pressed', String(host.dataset[key] === 'yes'));
      button.addEventListener('click', () => {
        host.dataset[key] = host.dataset[key] === 'yes' ? 'no' : 'yes';
        button.setAttribute('aria-pressed', String(host.dataset[key] === 'yes'));
        show(at);
      });
      return button;
    }
    choice('own', `colours of this ${staged ? 'stage' : 'step'}`, last.figure);
    const between = run.finer ? choice('finer', 'finer map', made[made.length - 2].figure) : null;
    GPAS.reshow = () => show(at);
    GPAS.onTheme(() => made.forEach(({ map }) => map.again()));
    function show(now) {
      at = now;
      const values = made.length === 3 ? [now.truth, now.mean, now.std] : [now.mean, now.std];
      last.range = host.dataset.own === 'yes' ? [0, now.std.reduce((a, b) => Math.max(a, b), 0) || 1] : maps.doubt;
      last.mark(last.range);
      const finer = between && host.dataset.finer === 'yes' ? run.finer(steps[at.s].n) : null;
      if (between) {
        between.disabled = at.s < steps.length - 1 && !run.finer(steps[at.s].n, true);
        between.title = between.disabled ? `of the newest ${staged ? 'stage' : 'step'}` : 'the field between the places';
      }
      made.forEach(({ map, table, range, planned }, i) => {
        const own = finer && [finer.std, finer.mean][made.length - 1 - i]; // none of the truth
        map.show(values[i], table, range, own ? { ...finer, values: own } : null);
        if (planned) planned.hidden = !(steps[at.s].plan || []).length;
      });
    }
    return show;
  };
})();
