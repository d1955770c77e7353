/* The live page: parts of it come as server-sent events, and are shown as the report shows them. */
(function () {
  'use strict';

  const GPAS = window.GPAS;
  const { element } = GPAS;
  const byId = (id) => document.getElementById(id);
  const SILENT = 25000; // so long without a word, and the connection is lost [ms]
  const LONGEST = 10000; // between two tries [ms]
  const OLD = 10; // age of data that is marked, of a probe under way [s]
  const SILENT_PROBE = 30; // age of a position that is an alarm, of a probe under way [s]
  const BEEP = 4000; // between two tones of an alarm [ms]
  const ANSWER = 15000; // between two answers that this page takes what comes [ms]

  const parts = new Map();
  const maps = new Map(); // name of a part, such as map.3 -> its maps, unpacked
  const truths = new Map(); // beginning of the names of a quantity's parts -> its true field
  let chosen = ''; // beginning of the names of the parts of the quantity that is shown
  let places = null;
  let tracks = []; // where the robots drove
  const finer = new Map(); // quantity and number of a step -> its finer map, as far as it was asked for
  let asking = false; // for one
  let load = null; // shows a run again
  let shown = null; // the run that is shown
  let dirty = false;
  let hello = { control: false, may: false, why: '', stream: '' };
  let mark = '';
  let source = null; // ends the connection
  let retry = null;
  let answered = 0; // when the server was last told that this page takes what comes [ms]
  let silence = null;
  let wait = 500;
  let skew = 0; // of this clock against the server's [ms]
  let sure = null; // the button that has to be pressed once more

  // -- the token --------------------------------------------------------------------------------

  let token = '';
  try {
    token = sessionStorage.getItem('token') || '';
  } catch { /* storage is blocked: the token lasts until the page is left */ }

  /** Keep the token of the address in this tab only; a cookie would go to other ports too. */
  function enter() {
    const given = new URLSearchParams(location.hash.slice(1)).get('token');
    if (given === null) return false;
    token = given;
    try {
      sessionStorage.setItem('token', token);
    } catch { /* as above */ }
    history.replaceState(null, '', location.pathname);
    return true;
  }

  function ask(path, options = {}) {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    return fetch(path, { ...options, headers, cache: 'no-store' });
  }

  // -- the connection ---------------------------------------------------------------------------

  function link(state, text) {
    byId('link').dataset.state = state;
    byId('link').textContent = text;
    document.documentElement.classList.toggle('lost', state === 'lost');
    document.documentElement.dataset.link = state;
  }

  function fine() {
    const mission = parts.get('mission');
    if (!mission) link('wait', 'waiting');
    else if (['ended', 'stopped'].includes(mission.state)) link('over', 'over');
    else link('live', 'live');
  }

  /** Try again after a while, longer each time; say why where that is known. */
  function lost(mine, why) {
    if (source !== mine) return;
    clearTimeout(silence);
    source = null;
    mine.abort();
    const mission = parts.get('mission');
    const over = mission && ['ended', 'stopped'].includes(mission.state);
    link(over ? 'over' : 'lost', why || (over ? 'over; the server has ended' : 'connection lost, trying again …'));
    retry = setTimeout(connect, wait);
    wait = Math.min(LONGEST, 2 * wait);
    buttons();
  }

  function heard() {
    clearTimeout(silence);
    const mine = source;
    silence = setTimeout(() => lost(mine), SILENT);
  }

  function connect() {
    const mine = new AbortController();
    clearTimeout(retry);
    source = mine;
    heard();
    listen(mine).catch(() => lost(mine));
  }

  /** Take in server-sent events; an EventSource cannot send the token in a header. */
  async function listen(mine) {
    const after = mark ? `?after=${encodeURIComponent(mark)}` : '';
    const answer = await ask(`events${after}`, { signal: mine.signal });
    if (!answer.ok) {
      lost(mine, (await answer.text()).trim());
      return;
    }
    skew = Date.now() - Date.parse(answer.headers.get('Date')) || 0;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (source !== mine) return; // what comes after this is asked for again
      if (done) break;
      heard();
      const events = (rest + value).split('\n\n');
      rest = events.pop();
      for (const text of events) {
        await event(text).catch((error) => {
          GPAS.trouble(error);
          throw error;
        });
        if (source !== mine) return;
      }
    }
    lost(mine);
  }

  async function event(text) {
    const fields = Object.fromEntries(text.split('\n').map((line) => {
      const at = line.indexOf(': ');
      return [line.slice(0, at), line.slice(at + 2)];
    }));
    if (fields.event === 'hello') {
      hello = JSON.parse(fields.data);
      if (!hello.control || hello.may) say('');
      fine();
      buttons();
      tables();
    } else if (fields.event === 'change') {
      await take(JSON.parse(fields.data));
      mark = fields.id;
    }
    if (fields.event !== 'hello') wait = 500;
    if (Date.now() - answered < ANSWER) return;
    answered = Date.now();
    ask(`seen?stream=${encodeURIComponent(hello.stream)}`, { method: 'POST' }).catch(() => {});
  }

  // -- what comes -------------------------------------------------------------------------------

  async function take(change) {
    if (!('DecompressionStream' in window)) {
      throw new Error('this browser cannot unpack the maps (no DecompressionStream); use a newer one');
    }
    if (change.whole) {
      parts.clear();
      maps.clear();
      finer.clear();
      truths.clear();
    }
    for (const name of change.gone) {
      parts.delete(name);
      maps.delete(name);
    }
    const jobs = [];
    let drawn = false;
    for (const [name, part] of Object.entries(change.parts)) {
      if (name === 'places') jobs.push(GPAS.placesOf(part).then((found) => (places = found)));
      else if (name === 'tracks') jobs.push(GPAS.tracksOf(part).then((found) => (tracks = found)));
      else if (/(^|\/)truth$/.test(name)) jobs.push(GPAS.unpack(part).then((found) => truths.set(name.slice(0, -5), found.row(0))));
      else if (/(^|\/)map\./.test(name)) jobs.push(row(part).then((found) => maps.set(name, found)));
      else parts.set(name, part);
      drawn = drawn || /(^|\/)(head|maps|places|quality|truth|step\.|map\.)/.test(name);
    }
    await Promise.all(jobs);
    words();
    tables();
    if (drawn) draw();
    else if (shown && ('robots' in change.parts || 'tracks' in change.parts)) {
      shown.robots.splice(0, Infinity, ...parts.get('robots'));
      shown.tracks = tracks;
      if (GPAS.redraw) GPAS.redraw();
    }
    document.documentElement.dataset.ready = 'yes';
  }

  async function row(packed) {
    const found = {};
    await Promise.all(Object.entries(packed).map(async ([key, values]) => {
      found[key] = (await GPAS.unpack(values)).row(0);
    }));
    return found;
  }

  /** The run as the report's scripts want it. */
  function assemble() {
    const part = (name) => parts.get(chosen + name);
    const info = part('maps');
    const steps = Array.from({ length: info.all }, (_, i) => part(`step.${i}`));
    const truth = truths.get(chosen);
    const told = steps.flatMap((step) => step.readings);
    const rows = info.steps.map((i) => maps.get(`${chosen}map.${i}`));
    const layer = (key) => ({ rows: rows.length, columns: places.n, row: (i) => rows[i][key] });
    let real = null;
    if (truth) real = { rows: 1, columns: places.n, row: () => truth };
    else if (rows.every((found) => found.truth)) real = layer('truth');
    return {
      ...part('head'),
      goesOn: !['ended', 'stopped'].includes((parts.get('mission') || {}).state),
      quality: part('quality'),
      places,
      steps,
      maps: { ...info, mean: layer('mean'), std: layer('std'), truth: real },
      readings: { place: told.map((r) => r[0]), value: told.map((r) => r[1]), count: told.map((r) => r[2]) },
      robots: [...parts.get('robots')],
      tracks,
      finer: parts.get('run').finer && finerAt,
    };
  }

  /** The finer map of a step, which is asked for unless it is known or only `peek`ed at. */
  function finerAt(n, peek = false) {
    if (!peek && !finer.has(chosen + n)) askFiner(n);
    return finer.get(chosen + n) || null;
  }

  /** Ask for the finer map of the newest step; until it is computed, again and again. */
  async function askFiner(n) {
    if (asking) return;
    asking = true;
    const of = chosen;
    const answer = await ask(`finer?quantity=${of.slice(0, -1)}`).catch(() => null);
    const found = answer && answer.ok ? await answer.json().catch(() => null) : null;
    if (found) finer.set(of + found.n, await GPAS.finerOf(found));
    setTimeout(() => {
      asking = false;
      if (shown && GPAS.reshow) GPAS.reshow();
    }, finer.has(of + n) ? 0 : 1000);
  }

  function draw() {
    if (!parts.has('maps')) return;
    if (document.hidden) {
      dirty = true;
      return;
    }
    dirty = false;
    const names = parts.get('run').quantities;
    const begins = names.map((name, i) => (i ? `${name}/` : ''));
    if (!begins.includes(chosen)) chosen = '';
    if (byId('chooser').dataset.names !== names.join()) {
      byId('chooser').dataset.names = names.join();
      GPAS.chooser(names, begins.indexOf(chosen), (i) => {
        chosen = begins[i];
        draw();
      });
    }
    shown = assemble();
    if (load) load(shown);
    else load = GPAS.start(shown);
  }

  // -- words ------------------------------------------------------------------------------------

  const STATES = {
    begun: 'Begun', idle: 'Waiting for its start', running: 'Running', paused: 'Paused',
    ended: 'Finished', stopped: 'Stopped',
  };

  /** Texts that the server has made into HTML, with all that comes from the run escaped. */
  function escaped(id, name) {
    const text = parts.get(`page.${name}`) || '';
    const host = typeof id === 'string' ? byId(id) : id;
    if (host.dataset.text === text) return;
    host.dataset.text = text;
    host.innerHTML = text;
  }

  function words() {
    const run = parts.get('run');
    const mission = parts.get('mission');
    document.documentElement.classList.toggle('waiting', !mission);
    byId('facts').hidden = !mission;
    if (!mission) byId('strip').hidden = byId('alarms').hidden = true;
    if (!mission) {
      byId('heading').textContent = 'No mission yet';
      byId('state').textContent = '';
      byId('reason').textContent = run ? run.problem : '';
      for (const id of ['description', 'status', 'notes']) byId(id).textContent = '';
      document.title = 'No mission yet';
      shown = null;
      if (document.documentElement.dataset.link !== 'lost') fine();
      buttons();
      return;
    }
    for (const name of ['heading', 'description', 'status', 'notes', 'config']) escaped(name, name);
    escaped(document.querySelector('.tiles'), 'tiles');
    const state = STATES[mission.state] || mission.state;
    byId('state').textContent = mission.stage === null ? state : `${state}, stage ${mission.stage}`;
    byId('reason').textContent = mission.reason;
    document.title = `${state} · ${byId('heading').textContent}`;
    byId('known').textContent = mission.known;
    probes(mission);
    spent(mission);
    counts(mission);
    if (document.documentElement.dataset.link !== 'lost') fine();
    buttons();
  }

  /** Where each probe goes, how far that is, and how old its data are. */
  function probes(mission) {
    const host = byId('probes');
    host.replaceChildren();
    byId('strip').hidden = !mission.probes.length && !mission.spent.length;
    for (const row of mission.probes) {
      const card = element('article', 'probe', null, host);
      const head = element('h3', '', null, card);
      if (row.probe) element('b', '', row.probe, head);
      head.append(row.place ? `${row.probe ? ' to ' : 'Next: '}${row.place}` : row.gone || 'no place chosen');
      if (row.metres !== undefined) approach(row, element('div', 'numbers', null, card));
      const ages = element('p', 'ages', null, card);
      for (const [key, what] of [['poseAt', 'position'], ['readAt', 'reading used']]) {
        if (row[key] === undefined) continue;
        const age = element('span', '', null, ages);
        Object.assign(age.dataset, { at: row[key], what, bound: row.place && mission.state === 'running' ? row.probe || 'the probe' : '' });
      }
      if (row.why) element('p', 'because', row.why, card);
    }
    age();
  }

  const WINDS = ['N', 'NE', 'E', 'SE', 'S', 'SW', 'W', 'NW'];

  function approach(row, host) {
    const number = (value, unit, text) => {
      const box = element('div', '', null, host);
      const line = element('b', '', value, box);
      if (unit) element('small', '', ` ${unit}`, line);
      element('span', '', text, box);
      return line;
    };
    const far = row.metres >= 10000;
    number(far ? (row.metres / 1000).toFixed(1) : row.metres.toFixed(row.metres < 10 ? 1 : 0), far ? 'km' : 'm', 'distance');
    const degrees = String(Math.round(row.bearing) % 360).padStart(3, '0');
    const wind = row.north ? ` ${WINDS[Math.round(row.bearing / 45) % 8]}` : '';
    const bearing = number(`${degrees}°`, wind, row.north ? 'bearing' : 'from y axis');
    const arrow = GPAS.svg('svg', { viewBox: '-10 -10 20 20', class: 'arrow', 'aria-hidden': 'true' }, null);
    GPAS.svg('path', { d: 'M0-9L6 8L0 4L-6 8Z', transform: `rotate(${row.bearing})` }, arrow);
    bearing.prepend(arrow);
    if (row.seconds === null) return;
    const at = new Date(Date.now() + 1000 * row.seconds);
    number(span(row.seconds), '', `arrives ${at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}`);
  }

  /** A duration: 8 s, 2:05 min, 1:20 h. */
  function span(seconds) {
    const whole = Math.max(0, Math.round(seconds));
    if (whole < 60) return `${whole} s`;
    const [large, small, unit] = whole < 3600 ? [whole / 60, whole % 60, 'min'] : [whole / 3600, (whole % 3600) / 60, 'h'];
    return `${Math.floor(large)}:${String(Math.floor(small)).padStart(2, '0')} ${unit}`;
  }

  /** Count ages on, once a second; a probe that is sent somewhere and sends no position is an alarm. */
  function age() {
    const silent = [];
    for (const told of document.querySelectorAll('.ages span')) {
      const seconds = Math.max(0, (Date.now() - skew) / 1000 - Number(told.dataset.at));
      const pose = told.dataset.what === 'position';
      told.textContent = `${told.dataset.what} ${span(seconds)} ago`;
      told.dataset.level = !told.dataset.bound || seconds < OLD ? '' : pose && seconds >= SILENT_PROBE ? 'bad' : 'short';
      if (pose && told.dataset.level === 'bad') silent.push([told.dataset.bound, `no position of ${told.dataset.bound} for ${span(seconds)}`]);
    }
    alarms(silent);
  }

  function alarms(silent) {
    const mission = parts.get('mission');
    const known = mission ? mission.alarms : [];
    const named = (name) => known.some((text) => text.includes('silent') && text.includes(name));
    const said = [...known, ...silent.filter(([name]) => !named(name)).map(([, text]) => text)];
    const host = byId('alarms');
    host.hidden = !said.length;
    if ([...host.children].map((item) => item.textContent).join('\n') !== said.join('\n')) {
      host.replaceChildren();
      for (const text of said) element('li', '', text, host);
    }
    document.documentElement.classList.toggle('alarmed', said.length > 0);
    if (said.length && Date.now() - beeped > BEEP) beep();
  }

  let audio = null;
  let beeped = 0;

  function beep() {
    if (!audio) return;
    beeped = Date.now();
    const tone = audio.createOscillator();
    const loudness = audio.createGain();
    tone.frequency.value = 880;
    loudness.gain.value = 0.25;
    tone.connect(loudness).connect(audio.destination);
    tone.start();
    tone.stop(audio.currentTime + 0.35);
  }

  function sound() {
    const on = !audio;
    if (audio) audio.close();
    audio = on ? new AudioContext() : null; // a browser allows it where something is pressed
    byId('sound').textContent = on ? 'Sound on' : 'Sound off';
    byId('sound').setAttribute('aria-pressed', String(on));
    if (on) beep();
  }

  function spent(mission) {
    const host = byId('spent');
    host.replaceChildren();
    byId('spent-fact').hidden = !mission.spent.length;
    const over = ['ended', 'stopped'].includes(mission.state);
    for (const { what, share, text } of mission.spent) {
      const meter = element('div', 'meter', null, host);
      meter.dataset.level = over ? '' : share > 0.9 ? 'bad' : share > 0.75 ? 'short' : '';
      const line = element('div', '', null, meter);
      element('span', '', what, line);
      element('span', '', text, line);
      const bar = element('i', '', null, element('u', '', null, meter));
      bar.style.width = `${100 * (1 - share)}%`;
    }
  }

  function counts(mission) {
    const host = byId('counts');
    host.replaceChildren();
    const total = mission.refused.reduce((sum, [, count]) => sum + count, 0);
    element('p', '', `${mission.used} used, ${total} rejected${total ? ':' : ''}`, host);
    if (!total) return;
    const list = element('ul', 'refused', null, host);
    for (const [why, count] of mission.refused) element('li', '', `${count}: ${why}`, list);
  }

  const TABLES = { mission: 'facts', stages: 'stages' }; // place in the page -> name at the server

  /** The tables below the maps: each is asked for while it is open. */
  function tables() {
    const mission = parts.get('mission');
    byId('mission').hidden = !mission;
    byId('stages').hidden = !mission || !mission.records;
    Object.keys(TABLES).forEach(table);
  }

  async function table(id) {
    const host = byId(id);
    if (!host.open || host.hidden) return;
    const number = String(Number(host.dataset.asked || 0) + 1);
    host.dataset.asked = number;
    const answer = await ask(TABLES[id]).catch(() => null);
    const text = answer && answer.ok ? await answer.text().catch(() => null) : null;
    if (host.dataset.asked !== number) return; // it was asked for again meanwhile
    const said = host.querySelector('.soft');
    if (said) said.remove();
    if (text === null) element('p', 'soft', 'The connection is lost; this table is the last one received.', host);
    if (text === null || host.dataset.text === text) return;
    host.dataset.text = text;
    const made = document.createElement('div');
    made.innerHTML = text; // made by the server, with all that comes from the run escaped
    const found = made.querySelector('details');
    if (!found) return;
    const scrolled = [...host.querySelectorAll('.scroll')].map((box) => [box.scrollLeft, box.scrollTop]);
    host.replaceChildren(...found.childNodes);
    host.querySelectorAll('.scroll').forEach((box, i) => box.scrollTo(...(scrolled[i] || [0, 0])));
  }

  // -- commands ---------------------------------------------------------------------------------

  function say(text) {
    byId('said').textContent = text;
    byId('said').hidden = !text;
  }

  function buttons() {
    const mission = parts.get('mission');
    const state = mission ? mission.state : '';
    const fits = { pause: ['begun', 'running'], resume: ['paused'], finish: ['begun', 'running', 'paused', 'idle'] };
    byId('buttons').hidden = !hello.control;
    const linked = source !== null && document.documentElement.dataset.link !== 'lost';
    for (const button of byId('buttons').children) {
      button.disabled = !hello.may || !linked || !fits[button.dataset.do].includes(state);
      button.title = hello.may ? '' : hello.why;
    }
    if (hello.control && !hello.may && byId('said').hidden) say(hello.why);
  }

  function calm() {
    if (!sure) return;
    clearTimeout(sure.timer);
    sure.button.classList.remove('sure');
    sure.button.textContent = 'Finish';
    sure = null;
  }

  async function command(button) {
    const name = button.dataset.do;
    if (name === 'finish' && !sure) {
      button.classList.add('sure');
      button.textContent = 'Really finish?';
      sure = { button, timer: setTimeout(calm, 5000) };
      return;
    }
    calm();
    say(`${button.textContent} …`);
    try {
      const answer = await ask(`do/${name}`, { method: 'POST' });
      const text = await answer.text();
      const json = (answer.headers.get('Content-Type') || '').startsWith('application/json');
      const said = json ? JSON.parse(text).text : text.trim();
      say(answer.ok ? `${name}: ${said}` : `${name} was refused: ${said}`);
    } catch {
      say(`${name} was not sent: the connection is lost`);
    }
  }

  /** On a phone the maps come right after the strip. */
  function arrange() {
    if (narrow.matches) byId('field').after(byId('facts'));
    else byId('strip').after(byId('facts'));
  }

  const narrow = window.matchMedia('(max-width: 480px)');
  narrow.addEventListener('change', arrange);
  arrange();
  byId('sound').addEventListener('click', sound);
  setInterval(age, 1000);
  byId('buttons').addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button) command(button);
  });
  for (const id of Object.keys(TABLES)) byId(id).addEventListener('toggle', () => table(id));
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && dirty) draw();
  });
  window.addEventListener('pagehide', () => source && lost(source));
  window.addEventListener('pageshow', (event) => {
    if (event.persisted) connect();
  });
  window.addEventListener('hashchange', () => {
    if (!enter()) return;
    if (source) source.abort();
    connect();
  });
  enter();
  connect();
})();
