// The page of words: which two are chosen, the rule, the band, and what the server says of it. Live answers are asked for one at a time, and of
// changes that came meanwhile only the last; what asks the model (other words, another prompt) is a job that gives a record of its own.
(() => {
  let page = null; // of what is shown now
  const draw = () => window.fanlight.words;
  const $ = (id) => document.getElementById(id);
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const valueOf = (edits, kind) => edits.find((e) => kind in e)?.[kind];
  const without = (edits, ...kinds) => edits.filter((e) => !kinds.includes(Object.keys(e)[0]));
  const REDRAWN = ["drop_word", "replace_word", "exchange_words", "reorder_words", "weigh_word"];
  const ORDER = ["set_words", "set_rule", "set_band", ...REDRAWN]; // as the server stores them
  const sorted = (edits) => [...edits].sort((a, b) => ORDER.indexOf(Object.keys(a)[0]) - ORDER.indexOf(Object.keys(b)[0]));

  // --- state

  // One word alone is a matter of the page: the server knows pairs.
  const sent = (edits) => edits.filter((e) => e.set_words?.length !== 1);
  const dirty = () => !same(sent(page.edits), page.stored);
  // A picture is drawn by a job: until then what is shown is that of the record, and the other prompt is a draft in the address.
  const redrawing = (edits) => edits.find((e) => REDRAWN.includes(Object.keys(e)[0])) ?? null;
  const draft = () => { const wanted = redrawing(page.edits); return wanted && !same(wanted, redrawing(page.stored)) ? wanted : null; };
  function answerable(edits) {
    const wanted = redrawing(edits), drawn = redrawing(page.stored);
    return sent(wanted && !same(wanted, drawn) ? sorted([...without(edits, ...REDRAWN), ...(drawn ? [drawn] : [])]) : edits);
  }

  function change(edits, drag = false) {
    if (!page.live && !same(sent(edits), sent(page.edits))) return;
    edits = sorted(edits).filter((e) => !same(e.set_words, page.base)); // the pair that it was asked about is no change
    if (same(edits, page.edits)) return;
    if (!(drag && page.dragging)) { page.past.push(page.edits); page.future = []; }
    page.dragging = drag;
    go(edits);
  }
  function step(from, to) {
    if (!from.length) return;
    to.push(page.edits);
    page.dragging = false;
    go(from.pop());
  }
  function go(edits) {
    page.edits = edits;
    const query = new URLSearchParams(location.search);
    if (same(edits, page.stored)) query.delete("edits"); else query.set("edits", JSON.stringify(edits));
    history.replaceState(history.state, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
    keepSteps();
    buttons();
    if (same(answerable(edits), page.good)) return draw().paint(page);
    draw().chips(page); // with the click; the maps follow with the answer
    window.fanlight.wordsChange.show(page);
    ask();
  }
  function keepSteps() {
    const { past, edits, future } = page, most = window.fanlight.steps.MOST;
    window.fanlight.steps.keep(page.id, { past: past.slice(-most), edits, future: future.slice(-most) });
  }
  function buttons() {
    $("wd-undo").disabled = !page.past.length;
    $("wd-redo").disabled = !page.future.length;
    $("wd-save").disabled = !page.live || !dirty();
  }

  // --- asking

  const headers = { "content-type": "application/json", accept: "application/json" };
  const NONE = { code: "no_server", message: "The server does not answer. Try again in a moment." };
  async function call(path, body, method = "POST") {
    const how = body === undefined ? { headers } : { method, headers, body: JSON.stringify(body) };
    const answer = await fetch(`${window.fanlight.prefix}/api/v1${path}`, how).catch(() => null);
    const said = await answer?.json().catch(() => null);
    return answer?.ok ? { said } : { error: said?.error ?? NONE };
  }

  async function ask() {
    const mine = page;
    mine.again = true;
    if (mine.busy) return;
    mine.busy = true;
    while (mine.again) {
      mine.again = false;
      const wanted = answerable(mine.edits);
      const { said, error } = await call("/live", { explanation: mine.id, edits: wanted, session: mine.session, seq: ++mine.seq });
      if (page !== mine || mine.again || error?.code === "superseded") continue;
      if (error) { refused(error, mine); continue; }
      mine.good = wanted;
      mine.detail = said.detail;
      mine.summary = said.summary;
      tell("");
      draw().paint(mine);
    }
    mine.busy = false;
  }
  // A change that cannot be made is taken back, with the reason.
  function refused(error, mine) {
    mine.past = mine.past.filter((e) => !same(answerable(e), mine.good));
    go(mine.good);
    tell(error.message);
  }
  function tell(text, ...more) {
    const { make } = draw();
    $("wd-said").replaceChildren(...(text ? [make("div", { className: "notice" }, make("p", { text }), ...more)] : []));
  }

  // What the model is asked for: shown with its progress by assets/progress.js until it is there, then opened.
  async function job(path, body, words, more = "") {
    const mine = page, { make, node } = draw(), place = node("drawing");
    if (mine.working) return;
    mine.working = true;
    const bar = make("div", { className: "meter", role: "progressbar", ariaLabel: words }, make("div", { className: "fill" }));
    const waiting = make("div", { className: "waiting slim" }, make("p", { className: "said", text: `${words} …` }), bar, make("img", { className: "preview", alt: "What is known so far", hidden: true }));
    place.replaceChildren(waiting);
    place.scrollIntoView({ block: "nearest" });
    const ends = (text) => { mine.working = false; if (page === mine) { place.replaceChildren(); tell(text); $("wd-said").scrollIntoView({ block: "nearest" }); } };
    let { said, error } = await call(`${path}?wait=1`, body);
    if (error) return ends([error.message, error.hint].filter(Boolean).join(" "));
    if (said.job) {
      waiting.dataset.job = said.job;
      const stop = make("button", { className: "button small", text: "Cancel" });
      stop.addEventListener("click", () => { stop.disabled = true; call(`/jobs/${said.job}`, {}, "DELETE"); });
      waiting.append(stop);
    }
    while (page === mine && ["queued", "running"].includes(said.state)) {
      await new Promise((done) => setTimeout(done, 300));
      const found = await call(`/explanations/${said.id}`);
      if (found.error) return ends(found.error.message);
      said = { ...found.said, job: said.job };
    }
    if (page !== mine) return;
    if (said.state !== "succeeded") return ends(said.error ? [said.error.message, said.error.hint].filter(Boolean).join(" ") : `It was ${said.state}.`);
    mine.working = false;
    const query = new URLSearchParams(location.search); // what is looked at goes along
    query.delete("edits");
    if (more) query.set(more, "1");
    window.fanlight.go(`${window.fanlight.prefix}/e/${said.id}/words${query.size ? `?${query}` : ""}`);
  }
  const keep = (edits, words, more) => job("/interventions", { explanation: page.id, edits }, words, more);
  const again = (changes, words) => job("/explanations", { model: page.model, input: page.input, explainer: page.explainer, seed: page.seed, params: { ...page.params, ...changes } }, words);

  // --- words

  const chosen = (of) => valueOf(of.edits, "set_words") ?? of.detail.pair;
  const measured = (of, t) => {
    const [start, end] = of.detail.tokens[t];
    return of.detail.words.findIndex(([s, e]) => s <= start && end <= e);
  };
  // As the parameter of the method names it: of a repeated word which one.
  function named([start, , text]) {
    const every = page.detail.tokens.filter((t) => t[2].toLowerCase() === text.toLowerCase());
    return every.length > 1 ? `${text}#${every.findIndex((t) => t[0] === start) + 1}` : text;
  }
  const both = () => (page.chosen().length === 2 ? page.chosen() : page.detail.pair).map((k) => named(page.detail.words[k])).join(", ");

  function choose(k) {
    const now = page.chosen();
    const next = now.includes(k) ? now.filter((v) => v !== k) : now.length === 2 ? [k] : [...now, k];
    if (next.length) pair(next);
  }
  function pair(words) {
    const rule = valueOf(page.edits, "set_rule"), rest = without(page.edits, "set_words");
    // Probabilities are those of two words, or of all.
    const kept = Array.isArray(rule) && !Array.isArray(rule[1]) ? rest.map((e) => ("set_rule" in e ? { set_rule: "pointwise" } : e)) : rest;
    change([{ set_words: words }, ...kept]);
  }
  function other(t) {
    const { make } = draw(), first = page.detail.words[page.chosen()[0]], token = page.detail.tokens[t];
    const button = make("button", { className: "button small", text: `Measure it with “${first[2]}”`, data: { measure: `${named(first)}, ${named(token)}` } });
    tell(`“${token[2]}” was not measured. The model can be asked about it: the same picture, a record of its own.`, button);
  }
  const drafted = (edit, drag) => change([...without(page.edits, ...REDRAWN), ...(edit ? [edit] : [])], drag);
  const store = (more) => keep(sent(page.edits), draft() ? `Drawing ${window.fanlight.wordsChange.said(page, draft())}` : "Saving", more);

  // --- hands

  document.addEventListener("click", (e) => {
    const button = page && $("wd-page") && e.target.closest?.("#wd-page button");
    if (!button || button.disabled) return;
    const data = button.dataset;
    if (data.token) { tell(""); const k = page.measured(Number(data.token)); return k < 0 ? other(Number(data.token)) : choose(k); }
    if (data.measure) return again({ words: data.measure }, "Measuring");
    if (data.cell) { const [i, j] = data.cell.split(",").map(Number); return pair(i === j ? [i] : [i, j]); }
    if (data.quantity) {
      page.quantity = data.quantity;
      for (const b of document.querySelectorAll("#wd-page [data-quantity]")) b.setAttribute("aria-pressed", String(b === button));
      return draw().pairs(page);
    }
    if (data.context && data.context !== String(page.detail.context)) return again({ context: data.context === "true", words: both() }, data.context === "true" ? "Asking given the rest" : "Asking without the rest");
    if (data.rule) return change([...without(page.edits, "set_rule"), ...(data.rule === "min" ? [] : [{ set_rule: data.rule }])]);
    const acts = {
      "wd-undo": () => step(page.past, page.future),
      "wd-redo": () => step(page.future, page.past),
      "wd-save": () => store(),
      "wd-draw": () => store(),
      "wd-all": () => change(without(page.edits, "set_band")),
      "wd-back": () => change(without(page.edits, ...REDRAWN)),
    };
    acts[button.id]?.();
  });

  // A link shows what is stored: what is not is saved first.
  document.addEventListener("click", (e) => {
    if (!e.target.closest?.("#wd-page #ex-share") || !page || !page.live || !dirty()) return;
    e.preventDefault();
    e.stopPropagation();
    store("share");
  }, true);

  document.addEventListener("keydown", (e) => {
    if (!page || !$("wd-page")) return;
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "z") {
      if (e.target.closest?.("input:not([type=range]), textarea")) return;
      e.preventDefault();
      return e.shiftKey ? step(page.future, page.past) : step(page.past, page.future);
    }
    const frame = e.target.closest?.("#wd-page [data-map]");
    if (!frame || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Escape") { page.at = null; return draw().at(page); }
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
    if (!by) return;
    e.preventDefault();
    e.stopPropagation();
    const [h, w] = size(), [r, c] = page.at ?? [h >> 1, w >> 1], far = e.shiftKey ? 10 : 1;
    page.at = page.at ? [within(r + far * by[0], h), within(c + far * by[1], w)] : [r, c];
    draw().at(page);
  }, true);
  const within = (v, n) => Math.min(n - 1, Math.max(0, v));
  const size = () => { const v = page.detail.maps[0].values; return [v.length, v[0].length]; };

  let frame = 0, over = false;
  document.addEventListener("pointermove", (e) => {
    if (!page) return;
    const on = e.target.closest?.("#wd-page [data-map]");
    if (!on) {
      if (over && !document.activeElement?.closest?.("#wd-page [data-map]")) { page.at = null; draw().at(page); }
      over = false;
      return;
    }
    over = true;
    const box = on.getBoundingClientRect(), [h, w] = size();
    page.at = [within(Math.floor((h * (e.clientY - box.top)) / box.height), h), within(Math.floor((w * (e.clientX - box.left)) / box.width), w)];
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => page && draw().at(page));
  });

  // --- controls that only the script knows

  function controls() {
    const { make, node } = draw(), [lo, hi] = page.detail.range, look = page.look;
    const check = (name, text) => {
      const box = make("input", { type: "checkbox", checked: look[name] });
      box.addEventListener("change", () => { look[name] = box.checked; window.fanlight.wordsLook.looked(page); });
      return make("label", {}, box, text);
    };
    const dim = make("input", { type: "range", min: 0, max: 100, step: 5, value: look.opacity });
    dim.addEventListener("input", () => { look.opacity = Number(dim.value); window.fanlight.wordsLook.looked(page); });
    node("switches").replaceChildren(
      check("fade", "pale where not known: within two standard errors of 0, or under a hundredth of the scale"),
      check("normalise", "normalise each map"), make("label", {}, "opacity", dim));

    const ends = [["from", lo], ["to", hi]].map(([name, value], n) => {
      const input = make("input", { type: "range", min: lo, max: hi, step: (hi - lo) / 200, value, disabled: !page.live, ariaLabel: n ? "Highest log-SNR that counts" : "Lowest log-SNR that counts" });
      input.addEventListener("input", () => {
        const [from, to] = inputs.map((i) => Number(i.value)), gap = (hi - lo) / 50;
        const held = n ? [from, Math.max(to, from + gap)] : [Math.min(from, to - gap), to];
        input.value = held[n];
        const whole = held[0] <= lo + 1e-9 && held[1] >= hi - 1e-9;
        change([...without(page.edits, "set_band"), ...(whole ? [] : [{ set_band: held.map((v) => Number(v.toFixed(3))) }])], true);
      });
      input.addEventListener("change", () => { page.dragging = false; });
      return [input, make("label", {}, name, input)];
    });
    const inputs = ends.map(([input]) => input);
    node("range").replaceChildren(...ends.map(([, label]) => label), make("button", { id: "wd-all", className: "button small", text: "All" }));

    const ways = [["min", "the smaller of the two"], ["pointwise", "pointwise"]].map(([value, text]) => make("button", { className: "wd-pill", text, disabled: !page.live, data: { rule: value } }));
    node("rule").replaceChildren(make("div", { className: "wd-kinds", role: "group", ariaLabel: "Rule" }, ...ways));
    window.fanlight.wordsChances.controls(page);
  }

  const ruled = (edit) => change([...without(page.edits, "set_rule"), edit]);
  const settle = () => { page.dragging = false; };
  Object.assign(window.fanlight, { wordsState: { page: () => page, drafted, settle, call, ruled } });
  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    words: {
      start(data) {
        if (!data) return dash_clientside.no_update;
        const session = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
        page = {
          ...data, base: valueOf(data.stored, "set_words") ? null : data.detail.pair, session, seq: 0, past: [], future: [], good: data.stored, busy: false, again: false, working: false, dragging: false, at: null, quantity: "redundant",
          chosen: () => chosen(page), measured: (t) => measured(page, t), redrawing: () => redrawing(page.edits), draft,
        };
        const one = valueOf(page.edits, "set_words");
        if (one && !one.every((k) => Number.isInteger(k) && k >= 0 && k < page.detail.words.length)) page.edits = without(page.edits, "set_words");
        const told = window.fanlight.steps.recall(data.id);
        if (told && same(told.edits, page.edits)) Object.assign(page, told);
        window.fanlight.wordsLook.recall(page);
        controls();
        draw().paint(page);
        buttons();
        if (!same(answerable(page.edits), page.good)) ask();
        const query = new URLSearchParams(location.search);
        if (query.has("share")) {
          query.delete("share");
          history.replaceState(history.state, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
          setTimeout(() => $("ex-share")?.click());
        }
        return data.id;
      },
    },
  });
})();
