// What the page of words paints, from a `detail` of the server and what is chosen: chips, maps, values under the pointer, bars, pairs, curve, tables.
// assets/words.js holds the state and asks the server; this file only draws.
(() => {
  const PLACES = ["top left", "top middle", "top right", "middle left", "the middle", "middle right", "bottom left", "bottom middle", "bottom right"];
  const MAPS = ["a", "b", "both", "synergy", "redundant", "unique_a", "unique_b"];
  const PALE = 0.1; // opacity of what is not known
  const node = (name, root = document.getElementById("wd-page")) => root?.querySelector(`[data-wd="${name}"]`);
  const set = (at, text) => { if (at && at.textContent !== text) at.textContent = text; };
  function make(tag, { text, data, ...props } = {}, ...inside) {
    const made = Object.assign(document.createElement(tag), props);
    if (text !== undefined) made.textContent = text;
    Object.assign(made.dataset, data ?? {});
    made.append(...inside.filter((i) => i !== null && i !== undefined && i !== false));
    return made;
  }
  function number(v, n = 3) {
    if (!Number.isFinite(v)) return "not known";
    if (Math.abs(v) < 1e-12) return "0";
    const size = Math.floor(Math.log10(Math.abs(Number(v.toPrecision(n)))));
    const text = size < -4 ? v.toExponential(n - 1) : Number(v.toPrecision(n)).toLocaleString("en", { minimumFractionDigits: Math.max(0, n - 1 - size), maximumFractionDigits: Math.max(0, n - 1 - size) });
    return text.replaceAll("-", "\u2212");
  }
  const signed = (v, n = 3) => (v > 0 ? "+" : "") + number(v, n);
  const give = (v, e) => `${signed(v)} ± ${number(e, 2)}`;
  const sum = (rows) => rows.reduce((s, row) => s + row.reduce((t, v) => t + v, 0), 0);
  const most = (rows) => rows.reduce((m, row) => Math.max(m, ...row.map(Math.abs)), 0);
  function percentile(rows) {
    const all = rows.flat().map(Math.abs).sort((x, y) => x - y);
    return all[Math.min(all.length - 1, Math.ceil(0.99 * (all.length - 1)))] || all.at(-1) || 1;
  }

  // --- what is shown: two words with their atoms, or one word by itself

  function maps(page) {
    const d = page.detail, chosen = page.chosen();
    const all = Object.fromEntries(d.maps.map((m) => [m.name, m]));
    if (chosen.length === 2) return all;
    const k = chosen[0], one = d.singles[k];
    return { a: { ...one, name: "a", title: d.words[k][2] } };
  }
  const told = (page) => {
    const d = page.detail, chosen = page.chosen();
    if (chosen.length < 2) return [{ name: "a", label: d.words[chosen[0]][2], ...d.singles[chosen[0]], contradicted: false }];
    const labels = { a: d.words[d.pair[0]][2], b: d.words[d.pair[1]][2], both: "both" };
    return ["a", "b", "both"].map((name) => ({ name, label: labels[name], ...d.signed[name], contradicted: d.contradicted[name] }));
  };

  // --- chips

  function chips(page) {
    const d = page.detail, chosen = page.chosen();
    const root = document.getElementById("wd-chips"), focused = root.contains(document.activeElement) ? document.activeElement.dataset.token : null;
    root.replaceChildren(...d.tokens.map(([start, end, text], t) => {
      const k = page.measured(t), place = chosen.indexOf(k), letter = k < 0 || place < 0 ? "" : "AB"[place];
      const lost = d.cut && end > d.prompt.length - d.cut.length;
      const chip = make("button", { type: "button", className: `wd-chip${letter ? ` ${letter.toLowerCase()}` : ""}${k < 0 ? " other" : ""}${lost ? " lost" : ""}`, data: { token: t } },
        letter && make("b", { text: letter, ariaHidden: "true" }), text);
      chip.setAttribute("aria-pressed", String(!!letter));
      const state = letter ? `, word ${letter}` : lost ? ", cut off: the model never saw it" : k < 0 ? ", not measured" : "";
      chip.setAttribute("aria-label", `${text}${state}`);
      chip.title = lost ? "Cut off: the model never saw it" : k < 0 ? "Not measured yet" : letter ? "Click to leave it out" : "Click to choose it";
      chip.disabled = !!lost || (!page.live && k < 0);
      return chip;
    }));
    if (focused) root.querySelector(`[data-token="${focused}"]`)?.focus();
    set(node("hint"), chosen.length < 2 ? "One word is chosen. Click a second one to see what they say together."
      : "Click a word to look at it alone, then another for the two together. Pale words were not measured.");
    for (const b of document.querySelectorAll("#wd-page [data-context]")) b.setAttribute("aria-pressed", String(String(d.context) === b.dataset.context));
  }

  // --- maps

  const tables = new Map();
  function table(stops) {
    const key = stops.join();
    if (!tables.has(key)) {
      const rgb = stops.map((s) => [1, 3, 5].map((i) => parseInt(s.slice(i, i + 2), 16)));
      tables.set(key, Array.from({ length: 256 }, (_, i) => {
        const x = (i / 255) * (rgb.length - 1), n = Math.min(rgb.length - 2, Math.floor(x)), f = x - n;
        return rgb[n].map((v, c) => Math.round(v + f * (rgb[n + 1][c] - v)));
      }));
    }
    return tables.get(key);
  }
  // values, errors: rows of numbers; from lo to hi; what is within two errors of 0, or below a hundredth of the scale, is pale where `fade`.
  function canvas(at, values, { lo, hi, stops, errors = null, fade = false }) {
    const h = values.length, w = values[0].length, colours = table(stops), data = new ImageData(w, h);
    for (let r = 0, i = 0; r < h; r++) for (let c = 0; c < w; c++, i += 4) {
      const v = values[r][c], [x, y, z] = colours[Math.round(255 * Math.min(1, Math.max(0, (v - lo) / (hi - lo))))];
      const unsure = fade && (Math.abs(v) < hi / 100 || (errors && Math.abs(v) < 2 * errors[r][c]));
      data.data.set([x, y, z, unsure ? 255 * PALE : 255], i);
    }
    Object.assign(at, { width: w, height: h });
    at.getContext("2d").putImageData(data, 0, 0);
    at.classList.toggle("pixels", Math.max(w, h) <= 64);
  }

  function where(values) {
    const all = regions(values), total = all.reduce((s, v) => s + Math.max(0, v), 0);
    if (total <= 0) return "none of it above 0";
    const n = all.indexOf(Math.max(...all));
    return `${Math.round((100 * all[n]) / total)} % of it ${PLACES[n]}`;
  }
  function regions(values) {
    const h = values.length, w = values[0].length, out = Array(9).fill(0);
    values.forEach((row, r) => row.forEach((v, c) => { out[3 * Math.floor((3 * r) / h) + Math.floor((3 * c) / w)] += v; }));
    return out;
  }

  function paintMaps(page) {
    const d = page.detail, found = maps(page), look = page.look;
    for (const img of document.querySelectorAll('#wd-page [data-wd="picture"], #wd-page [data-wd="under"]')) if (img.src !== d.picture) img.src = d.picture;
    const own = found.b ? d.top : Math.max(d.top, percentile(found.a.values));
    for (const name of MAPS) {
      const figure = document.getElementById(`wd-map-${name.replace("_", "-")}`), map = found[name], frame = figure.querySelector(".wd-frame");
      figure.classList.toggle("absent", !map);
      figure.querySelector(".wd-empty").hidden = !!map;
      frame.hidden = !map;
      set(node("title", figure), map ? (name.length === 1 ? `${name.toUpperCase()}: ${map.title}` : map.title) : { b: "B", both: "both", unique_a: "unique: A", unique_b: "unique: B" }[name] ?? name);
      set(node("sum", figure), map ? `${number(map.sum)} nat` : "");
      if (name.length === 1 || name === "both") {
        const s = !map ? null : found.b ? d.signed[name] : map;
        set(node("sub", figure), s ? `signed ${give(s.value, s.error)}` : "");
      }
      if (!map) { figure.querySelector("figcaption").dataset.top = ""; continue; }
      const top = look.normalise ? percentile(map.values) : own, diverging = name === "synergy" || map.values.some((row) => row.some((v) => v < -top / 100));
      canvas(node("paint", figure), map.values, { lo: diverging ? -top : 0, hi: top, stops: diverging ? d.stops.diverging : d.stops.sequential, errors: map.errors, fade: look.fade });
      frame.setAttribute("aria-label", `${map.title}: ${number(map.sum)} nat, ${where(map.values)}.`);
      figure.querySelector("figcaption").dataset.top = look.normalise ? `scale to ${number(top, 2)}` : "";
    }
    document.getElementById("wd-page").style.setProperty("--wd-opacity", look.opacity / 100);
    scale(page, own);
    window.fanlight.wordsLook.paint(page, own);
    at(page);
  }

  function scale(page, top) {
    const d = page.detail, each = page.look.normalise;
    const bar = (stops, lo, hi, unit) => {
      const colours = make("span", { className: "colours", ariaHidden: "true" });
      colours.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
      return [make("span", { className: "num", text: lo }), colours, make("span", { className: "num", text: hi }), make("span", { className: "quiet", text: unit })];
    };
    const floor = d.floor === null ? "no noise floor: this model does not know the word “the”" : `noise floor ${number(d.floor, 2)}`;
    node("scale").replaceChildren(...bar(d.stops.sequential, "0", each ? "its own top" : number(top, 2), each ? `${d.unit}, each map on its own scale · ${floor}` : `${d.unit}, one scale for all · ${floor}`));
    node("scale-synergy").replaceChildren(...bar(d.stops.diverging, each ? "−" : number(-top, 2), each ? "+" : number(top, 2), "synergy, and what falls below 0"));
  }

  // What all maps say at one place.
  function at(page) {
    const d = page.detail, frames = document.querySelectorAll("#wd-page [data-map]"), place = page.at, found = maps(page);
    const h = found.a.values.length, w = found.a.values[0].length, beside = window.fanlight.wordsLook.chosen(page);
    for (const frame of frames) {
      frame.classList.toggle("read", !!place);
      if (!place) continue;
      frame.style.setProperty("--x", `${(100 * (place[1] + 0.5)) / w}%`);
      frame.style.setProperty("--y", `${(100 * (place[0] + 0.5)) / h}%`);
      const map = found[frame.dataset.map] ?? beside.find((m) => m.name === frame.dataset.map), out = frame.querySelector(".pixel");
      if (map && out) set(out, number(map.values[place[0]][place[1]]));
    }
    set(node("place"), place ? `Column ${place[1] + 1}, row ${place[0] + 1} of ${w} × ${h}:` : "Point at a picture or map, or use arrow keys on the picture.");
    const rows = !place ? [] : [...MAPS.filter((n) => found[n]).map((n) => found[n]), ...beside].flatMap((map) => {
      const value = map.values[place[0]][place[1]], error = map.errors?.[place[0]]?.[place[1]];
      return [make("dt", { text: map.title }), make("dd", { text: `${number(value)}${error === undefined ? "" : ` ± ${number(error, 2)}`}` })];
    });
    const moved = place && d.moved ? [make("dt", { text: "moved" }), make("dd", { text: number(d.moved.values[place[0]][place[1]]) })] : [];
    node("values").replaceChildren(...rows, ...moved);
  }

  // --- signed values

  function bars(page) {
    const d = page.detail, rows = told(page);
    const lo = Math.min(0, ...rows.map((r) => r.value - 2 * r.error)), hi = Math.max(0, ...rows.map((r) => r.value + 2 * r.error));
    const x = (v) => `${(100 * (v - lo)) / (hi - lo || 1)}%`;
    node("signed").replaceChildren(...rows.map((r) => {
      const sure = Math.abs(r.value) > 2 * r.error, word = !sure ? "not told from 0" : r.value > 0 ? "helps" : "is contradicted";
      const level = make("span", { className: `wd-level ${r.value < 0 ? "against" : "for"}` });
      Object.assign(level.style, { left: x(Math.min(0, r.value)), right: `calc(100% - ${x(Math.max(0, r.value))})` });
      const range = make("span", { className: "wd-whisker" });
      Object.assign(range.style, { left: x(r.value - 2 * r.error), right: `calc(100% - ${x(r.value + 2 * r.error)})` });
      const zero = make("span", { className: "wd-zero" });
      zero.style.left = x(0);
      const track = make("span", { className: "wd-track", ariaHidden: "true" }, level, range, zero);
      return make("div", { className: "wd-bar" }, make("span", { className: "wd-who", text: r.label }), make("span", { className: "num", text: give(r.value, r.error) }), track,
        make("span", { className: "quiet", text: r.contradicted ? "its map is sure, yet it makes the prediction worse" : word }));
    }));
    const i = d.interaction;
    const together = rows.length < 2 ? "" : ` Both less their sum: ${give(i.value, i.error)}${Math.abs(i.value) < 2 * i.error ? ", not told from 0" : i.value < 0 ? ": they repeat each other" : ": more than their sum"}.`;
    set(node("signed-said"), `Nats about the whole picture ± standard error; lines are two errors.${together}`);
  }

  // --- every pair

  function pairs(page) {
    const d = page.detail, by = page.quantity, n = d.words.length, chosen = page.chosen();
    const value = (i, j) => {
      if (i === j) return d.singles[i].sum;
      const found = d.matrix.find((p) => p.pair[0] === Math.min(i, j) && p.pair[1] === Math.max(i, j));
      return !found ? null : by === "unique" ? found.unique[i < j ? 0 : 1] : found[by];
    };
    const all = [];
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) all.push(Math.abs(value(i, j) ?? 0));
    const top = Math.max(...all) || 1;
    const cell = (i, j) => {
      const v = value(i, j);
      if (v === null) return make("td", { className: "quiet", text: "–", title: "not measured together" });
      const on = i === j ? chosen.length === 1 && chosen[0] === i : chosen.length === 2 && chosen.includes(i) && chosen.includes(j);
      const what = i === j ? `${d.words[i][2]} alone` : by === "unique" ? `${d.words[i][2]}, not ${d.words[j][2]}` : `${d.words[i][2]} and ${d.words[j][2]}`;
      const button = make("button", { type: "button", className: `wd-cell num${i === j ? " alone" : ""}${v < 0 ? " less" : ""}`, text: v.toFixed(2).replace(/^-(?=0\.00$)/, "").replace("-", "\u2212"), data: { cell: `${i},${j}` } });
      button.style.setProperty("--share", `${Math.round((60 * Math.abs(v)) / top)}%`);
      button.setAttribute("aria-label", `${what}: ${number(v, 2)} nat`);
      button.setAttribute("aria-pressed", String(on));
      return make("td", {}, button);
    };
    const root = node("matrix"), focused = root.contains(document.activeElement) ? document.activeElement.dataset.cell : null;
    const heads = d.words.map(([, , text]) => make("th", { text, scope: "col" }));
    const rows = d.words.map(([, , text], i) => make("tr", {}, make("th", { text, scope: "row" }), ...d.words.map((_, j) => cell(i, j))));
    root.replaceChildren(make("table", { className: "wd-matrix" }, make("thead", {}, make("tr", {}, make("td"), ...heads)), make("tbody", {}, ...rows)));
    if (focused) root.querySelector(`[data-cell="${focused}"]`)?.focus();
    const means = { redundant: "what either of the two says", synergy: "what only both together say", unique: "what the word of the row says and that of the column does not" }[by];
    const [one, other] = (chosen.length === 2 ? chosen : d.pair).map((k) => d.words[k]), [from, to] = one[0] < other[0] ? [one, other] : [other, one];
    const template = `${d.prompt.slice(0, from[0])}{${from === one ? "a" : "b"}}${d.prompt.slice(from[1], to[0])}{${to === one ? "a" : "b"}}${d.prompt.slice(to[1])}`;
    node("study").href = `${window.fanlight.prefix}/studies/new?${new URLSearchParams({ model: page.model, explainer: page.explainer, template, first: one[2], second: other[2] })}`;
    set(node("matrix-said"), `Nats, summed over pixels: ${means}; framed, a word alone${d.context ? " given the rest" : ""}. Click a cell to see its maps.`);
  }

  // --- the integrand over log-SNR

  function curve(page) {
    const { alpha, a_map: a, b_map: b, both_map: both } = page.detail.curves, [lo, hi] = page.detail.range, [from, to] = page.detail.band ?? [lo, hi];
    const top = Math.max(...a, ...b, ...both) || 1, W = 400, H = 110;
    const x = (v) => (W * (v - lo)) / (hi - lo || 1), y = (v) => H - 4 - ((H - 10) * v) / top;
    const line = (values, name) => `<path class="${name}" d="M${alpha.map((v, i) => `${x(v).toFixed(1)} ${y(values[i]).toFixed(1)}`).join("L")}"/>`;
    const clip = (v) => Math.min(W, Math.max(0, x(v)));
    node("curve").innerHTML = `<svg viewBox="0 0 ${W} ${H}" preserveAspectRatio="none" aria-hidden="true">${line(both, "both")}${line(a, "a")}${line(b, "b")}`
      + `<rect class="out" x="0" y="0" width="${clip(from)}" height="${H}"/><rect class="out" x="${clip(to)}" y="0" width="${W - clip(to)}" height="${H}"/></svg>`;
    const peak = alpha[both.indexOf(Math.max(...both))];
    node("curve").setAttribute("aria-label", `Nats per unit of log-SNR of A, B and both; both are largest at a log-SNR of ${number(peak, 2)}, with ${number(Math.max(...both), 2)}.`);
    set(node("curve-said"), `Nats per unit of log-SNR, up to ${number(top, 2)}. Red: A, dashed blue: B, grey: both. Left, much noise: where things are; right, little noise: detail. What is said inside the band counts in all maps.`);
    set(node("band-said"), page.detail.band ? `log-SNR ${number(from, 2)} to ${number(to, 2)} only` : `log-SNR ${number(lo, 2)} to ${number(hi, 2)}: all`);
    const [first, second] = document.querySelectorAll('#wd-page [data-wd="range"] input');
    if (first && document.activeElement !== first) first.value = from;
    if (second && document.activeElement !== second) second.value = to;
    first?.setAttribute("aria-valuetext", number(from, 2));
    second?.setAttribute("aria-valuetext", number(to, 2));
    document.getElementById("wd-all").disabled = !page.detail.band;
  }

  function rule(page) {
    const d = page.detail;
    for (const b of document.querySelectorAll("#wd-page [data-rule]")) b.setAttribute("aria-pressed", String(b.dataset.rule === d.rule));
    window.fanlight.wordsChances.show(page);
    set(node("rule-said"), d.rule === "min" ? "At every place the smaller of the two informations. Redundant and unique are never below 0."
      : `As published, reconstructed, not verified against the paper. ${d.chances ? "An unlikely word has to say more before it counts." : "Both words count as equally likely: redundant is then the larger information, and unique never above 0."}`);
  }

  // --- words and numbers

  function facts(page) {
    const d = page.detail, warnings = [];
    if (d.caveat) warnings.push(d.caveat);
    if (d.drawn && d.drawn.guidance !== 1) warnings.push(`Drawn with guidance ${number(d.drawn.guidance, 2)}: the picture is no sample of the prompt, and signed values are inflated.`);
    if (d.cut) warnings.push(`The model never saw “${d.cut.trim()}”: the prompt is longer than it reads.`);
    if (d.fitted) warnings.push(d.fitted);
    if (page.chosen().length === 2 && d.floor_sum && Math.min(...["a", "b"].map((n) => d.maps.find((m) => m.name === n).sum)) < 2 * d.floor_sum) warnings.push("One of the two words says hardly more than a word that should say nothing.");
    const warn = node("warning");
    warn.hidden = !warnings.length;
    set(warn, warnings.join(" "));
    const sure = ["a", "b", "both"].filter((n) => d.calibrated[n]).map((n) => ({ a: "A", b: "B" }[n] ?? n));
    const rows = [
      ["Estimator", "maps: orthogonal, never below 0, cannot tell a word that is there from one that is not; totals: signed"],
      ["Words", `${d.context ? "given the rest of the prompt (CPID)" : "alone, against nothing (PID)"}; taken out by “${d.removal}”`],
      ["Redundancy", d.rule === "min" ? "the smaller of the two" : `pointwise, ${d.chances ? `probabilities ${d.chances.map((p) => number(p, 2)).join(" and ")}` : "equal probabilities"}`],
      ["Asked", `${d.evaluations.toLocaleString("en")} evaluations at ${d.nodes} log-SNRs`],
      ["Standard error", `of both ± ${number(d.signed.both.error, 2)} nat; maps: under the pointer`],
      ["Noise floor", d.floor === null ? "not known: the model does not know the word “the”" : `${number(d.floor, 2)} nat per latent pixel, ${number(d.floor_sum, 2)} in sum`],
      ["Sums of maps", sure.length ? `calibrated: ${sure.join(", ")}; others compare with their signed values` : "not calibrated: compare with the signed values"],
      ["Drawn", d.drawn ? `seed ${d.drawn.seed}, ${d.drawn.steps} steps, guidance ${number(d.drawn.guidance, 2)}` : "a picture of your own"],
      ["Cut off", d.cut ? `“${d.cut.trim()}”` : "nothing"],
    ];
    node("facts").replaceChildren(...rows.flatMap(([name, text]) => [make("dt", { text: name }), make("dd", { text })]));
    set(node("sentence"), page.chosen().length === 2 ? page.summary : `“${d.words[page.chosen()[0]][2]}” says ${give(d.singles[page.chosen()[0]].value, d.singles[page.chosen()[0]].error)} nat about the picture${d.context ? " given the rest of the prompt" : ""}; ${where(maps(page).a.values)}.`);
  }

  function tabled(page) {
    const found = maps(page), names = MAPS.filter((n) => found[n]), sums = names.map((n) => regions(found[n].values));
    const head = make("tr", {}, make("th", { text: "region (nat)", scope: "col" }), ...names.map((n) => make("th", { text: found[n].title, scope: "col" })));
    const rows = PLACES.map((place, i) => make("tr", {}, make("th", { text: place, scope: "row" }), ...sums.map((s) => make("td", { text: number(s[i]) }))));
    rows.push(make("tr", {}, make("th", { text: "all", scope: "row" }), ...names.map((n) => make("td", { text: number(sum(found[n].values)) }))));
    node("regions").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
  }

  function paint(page) {
    if (!document.getElementById("wd-page")) return;
    const { show, again } = window.fanlight.wordsChange;
    for (const act of [chips, paintMaps, bars, pairs, curve, rule, again, facts, tabled, show]) act(page);
  }
  window.fanlight = { ...window.fanlight, words: { paint, chips, paintMaps, at, pairs, make, node, set, number, canvas, where, most, percentile } };
})();
