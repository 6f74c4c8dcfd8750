// The words changed and the picture drawn again: the form, what the prompt would read, and the second picture beside the first. A change is an edit in the
// address from its first letter on, with undo and redo; only “Draw it” (or Save) asks the model. assets/words.js holds the edits.
(() => {
  const draw = () => window.fanlight.words, state = () => window.fanlight.wordsState;
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const kindOf = (edit) => Object.keys(edit)[0];
  const MOST = 10; // a weight, to either side
  const form = { record: null, way: null, n: 0, m: 1, text: "", weight: 2, order: [] };

  // --- form and edit

  // What the form says, in the one form that the server stores; null where it says nothing yet.
  function edit() {
    const { way, n, m, text, weight, order } = form;
    if (way === "drop_word") return { drop_word: n };
    if (way === "replace_word") return text.trim() ? { replace_word: [n, text.trim().split(/\s+/).join(" ")] } : null;
    if (way === "exchange_words") return n === m ? null : { exchange_words: [n, m].sort((a, b) => a - b) };
    if (way === "weigh_word") return Number.isFinite(weight) && Math.abs(weight) <= MOST ? { weigh_word: [n, weight] } : null;
    if (way === "reorder_words") return order.some((t, i) => t !== i) ? { reorder_words: order } : null;
    return null;
  }
  function follow(edit, count) {
    form.way = edit ? kindOf(edit) : null;
    form.order = [...Array(count).keys()];
    if (!edit) return;
    const value = edit[form.way];
    if (form.way === "drop_word") form.n = value;
    else if (form.way === "reorder_words") form.order = [...value];
    else [form.n, form[{ replace_word: "text", exchange_words: "m", weigh_word: "weight" }[form.way]]] = value;
  }

  // --- what the prompt would read

  function reads(page, edit) {
    const { make } = draw(), { prompt, tokens } = page.detail, kind = kindOf(edit), value = edit[kind];
    const parts = [];
    let end = 0;
    tokens.forEach(([from, to, text], t) => {
      parts.push(prompt.slice(end, from));
      end = to;
      const was = make("del", { text }), now = (words) => make("ins", { text: words });
      if (kind === "drop_word" && value === t) parts.push(was);
      else if (kind === "replace_word" && value[0] === t) parts.push(was, " ", now(value[1]));
      else if (kind === "exchange_words" && value.includes(t)) parts.push(now(tokens[value[0] === t ? value[1] : value[0]][2]));
      else if (kind === "weigh_word" && value[0] === t) parts.push(make("ins", { text }), make("small", { className: "num", text: ` × ${draw().number(value[1], 2)}` }));
      else if (kind === "reorder_words" && value[t] !== t) parts.push(now(tokens[value[t]][2]));
      else parts.push(text);
    });
    return [...parts, prompt.slice(end)];
  }
  function said(page, edit) {
    const kind = kindOf(edit), value = edit[kind], word = (t) => `“${page.detail.tokens[t][2]}”`;
    return {
      drop_word: () => `without ${word(value)}`, replace_word: () => `with “${value[1]}” for ${word(value[0])}`,
      exchange_words: () => `with ${word(value[0])} and ${word(value[1])} exchanged`, weigh_word: () => `with ${word(value[0])} weighed by ${draw().number(value[1], 2)}`,
      reorder_words: () => "in another order",
    }[kind]();
  }

  // --- the form

  function changed(drag = false) { state().drafted(edit(), drag); }

  function select(page, name, label) {
    const { make } = draw(), tokens = page.detail.tokens;
    const options = tokens.map(([, , text], t) => make("option", { value: t, text: `${text}${tokens.filter((o) => o[2] === text).length > 1 ? ` (${t + 1}. word)` : ""}`, selected: t === form[name] }));
    const made = make("select", { id: `wd-${name === "n" ? "which" : "with"}`, disabled: !page.live }, ...options);
    made.addEventListener("change", () => { form[name] = Number(made.value); changed(); });
    return [make("label", { text: label, htmlFor: made.id }), made];
  }
  function weight(page) {
    const { make } = draw();
    const box = make("input", { id: "wd-weight", type: "number", min: -MOST, max: MOST, step: "any", value: form.weight, disabled: !page.live });
    const slide = make("input", { type: "range", min: -2, max: 4, step: 0.1, value: form.weight, disabled: !page.live, ariaLabel: "Weight, from minus 2 to 4" });
    box.addEventListener("input", () => { form.weight = box.value.trim() === "" ? NaN : Number(box.value); slide.value = box.value; changed(true); });
    slide.addEventListener("input", () => { form.weight = Number(slide.value); box.value = slide.value; changed(true); });
    for (const input of [box, slide]) input.addEventListener("change", () => state().settle());
    const means = make("p", { className: "quiet wide", text: "1 is as it was, 0 without the word, 2 twice as much of what it says, below 0 away from it. From −10 to 10." });
    return [make("label", { text: "Weight", htmlFor: "wd-weight" }), make("span", { className: "wd-weight" }, slide, box), means];
  }
  function order(page) {
    const { make } = draw(), words = form.order.map((t) => page.detail.tokens[t][2]);
    const move = (place, by, name) => {
      const button = make("button", { type: "button", className: "wd-move", text: by < 0 ? "‹" : "›", disabled: !page.live || place + by < 0 || place + by >= words.length, data: { place, by } });
      button.setAttribute("aria-label", `${name}: one place ${by < 0 ? "earlier" : "later"}`);
      button.addEventListener("click", () => {
        const next = [...form.order];
        [next[place], next[place + by]] = [next[place + by], next[place]];
        form.order = next;
        changed();
        const at = document.querySelector(`#wd-changing [data-place="${place + by}"][data-by="${by}"]`);
        (at?.disabled ? document.querySelector(`#wd-changing [data-place="${place + by}"][data-by="${-by}"]`) : at)?.focus();
      });
      return button;
    };
    const all = words.map((text, place) => make("li", {}, move(place, -1, text), make("span", { text }), move(place, 1, text)));
    return [make("ol", { className: "wd-order wide", ariaLabel: "Words in their new order" }, ...all)];
  }
  function replacing(page) {
    const { make } = draw();
    const input = make("input", { id: "wd-other", maxLength: 100, autocomplete: "off", value: form.text, disabled: !page.live });
    input.addEventListener("input", () => { form.text = input.value; changed(true); });
    input.addEventListener("change", () => state().settle());
    input.addEventListener("keydown", (e) => { if (e.key === "Enter" && !e.isComposing) { e.preventDefault(); document.getElementById("wd-draw").click(); } });
    return [make("label", { text: "With", htmlFor: "wd-other" }), input];
  }
  const FIELDS = {
    drop_word: (page) => select(page, "n", "Word"),
    replace_word: (page) => [...select(page, "n", "Word"), ...replacing(page)],
    exchange_words: (page) => [...select(page, "n", "Word"), ...select(page, "m", "With")],
    weigh_word: (page) => [...select(page, "n", "Word"), ...weight(page)],
    reorder_words: order,
  };

  let built = null; // what the fields show, so that typing does not build them anew
  function fields(page) {
    const place = draw().node("fields");
    if (!place) return;
    const key = JSON.stringify([page.id, page.live, form.way, form.way === "reorder_words" ? form.order : null]);
    if (key !== built || !place.isConnected || (form.way && !place.children.length)) {
      place.replaceChildren(...(form.way ? FIELDS[form.way](page) : []));
      built = key;
    }
    for (const [id, name] of [["wd-which", "n"], ["wd-with", "m"], ["wd-weight", "weight"], ["wd-other", "text"]]) {
      const at = document.getElementById(id);
      if (at && document.activeElement !== at && String(form[name]) !== at.value && !Number.isNaN(form[name])) { at.value = form[name]; at.previousElementSibling?.matches("[type=range]") && (at.previousElementSibling.value = form[name]); }
    }
    for (const b of document.querySelectorAll("#wd-changing [data-way]")) { b.setAttribute("aria-pressed", String(b.dataset.way === form.way)); b.disabled = !page.live; }
  }

  // After every change of the edits, whoever made it.
  function show(page) {
    const { node, set } = draw(), wanted = page.redrawing(), count = page.detail.tokens.length;
    if (!document.getElementById("wd-changing") || !node("fields")) return;
    if (form.record !== page.id) {
      built = null;
      const [first, second] = page.chosen().map((k) => page.detail.tokens.findIndex((t) => t[0] === page.detail.words[k][0]));
      Object.assign(form, { record: page.id, way: null, n: Math.max(0, first), m: Math.max(0, second ?? (first === 0 ? 1 : 0)), text: "", weight: 2, order: [...Array(count).keys()] });
    }
    if (!same(wanted, edit())) follow(wanted, count);
    fields(page);
    const there = node("reads");
    there.hidden = !wanted;
    if (wanted) there.replaceChildren("“", ...reads(page, wanted), "”");
    const draft = page.draft();
    document.getElementById("wd-draw").disabled = !page.live || !draft;
    set(node("draft"), draft ? "not drawn yet" : wanted ? "drawn: it stands beside the first" : "");
  }

  document.addEventListener("click", (e) => {
    const way = e.target.closest?.("#wd-changing [data-way]:enabled");
    if (!way) return;
    const other = form.way !== way.dataset.way;
    form.way = other ? way.dataset.way : null;
    built = null;
    const page = state().page();
    changed();
    fields(page);
    if (other) document.querySelector("#wd-changing [data-wd=fields] :is(select, button:enabled)")?.focus({ preventScroll: true });
  });

  // --- drawn again

  // Maps to hold beside what moved, with what the server says of their correlation.
  function beside(page) {
    const { moved, maps, words, attention } = page.detail, names = moved.words.map((k) => `“${words[k][2]}”`).join(", ");
    const all = maps.map((m) => ({ name: m.name, title: m.name.length === 1 ? `${m.name.toUpperCase()}: ${m.title}` : m.title, values: m.values, correlation: moved.correlations[m.name] }));
    const looks = moved.words.length && attention.length ? moved.words.map((k) => attention[k].values).reduce(added) : null;
    return [
      moved.foretold && { name: "foretold", title: `what the maps of ${names} foretold`, values: moved.foretold, correlation: moved.correlation },
      looks && { name: "attention", title: `attention to ${names}`, values: looks, correlation: moved.attention, unit: "" },
      ...all,
    ].filter(Boolean);
  }
  const added = (x, y) => x.map((row, r) => row.map((v, c) => v + y[r][c]));

  function again(page) {
    const { node, set, make, number, canvas, where, most, percentile } = draw(), d = page.detail, root = document.getElementById("wd-redrawn");
    root.hidden = !(d.changed && d.moved) || !page.redrawing();
    if (root.hidden) return;
    set(node("redrawn-title"), `Drawn again ${d.redrawn_as}`);
    node("was").src = d.picture;
    node("now").src = d.changed;
    node("was").alt = `The picture of “${d.prompt}”`;
    node("now").alt = `The same noise, ${d.redrawn_as}`;
    set(node("was-said"), "as it was");
    set(node("now-said"), `${d.redrawn_as}, the same seed`);
    const top = most(d.moved.values) || 1;
    canvas(node("moved-paint"), d.moved.values, { lo: 0, hi: top, stops: d.stops.sequential });
    set(node("moved-said"), `what moved: 0 to ${number(top, 2)}, mean over channels of at most 2`);
    root.querySelector('[data-map="moved"]').setAttribute("aria-label", `What moved, ${where(d.moved.values)}.`);
    const all = beside(page), list = document.getElementById("wd-beside");
    const shown = all.find((m) => m.name === page.look.moved) ?? all[0];
    list.replaceChildren(...all.map((m) => make("option", { value: m.name, text: `${m.title}${m.correlation === null ? "" : ` (${number(m.correlation, 2)})`}`, selected: m === shown })));
    const frame = root.querySelector('[data-map="said"]'), peak = percentile(shown.values), less = shown.values.some((row) => row.some((v) => v < -peak / 100));
    canvas(node("said-paint"), shown.values, { lo: less ? -peak : 0, hi: peak, stops: less ? d.stops.diverging : d.stops.sequential });
    set(node("said-said"), `${shown.title}: ${less ? number(-peak, 2) : 0} to ${number(peak, 2)} ${shown.unit ?? "nat"}`);
    frame.setAttribute("aria-label", `${shown.title}, ${where(shown.values)}.`);
    const none = d.moved.foretold ? "" : "The word that was changed was not measured, so no map is of it alone. ";
    const found = shown.correlation === null ? `There is no correlation of what moved with ${shown.title}: one of the two is the same everywhere.`
      : `Correlation of what moved with ${shown.title}: ${number(shown.correlation, 2)} (Pearson, over places).`;
    set(node("redrawn-said"), `${none}${found} The picture moves by its own way, too: this is a check of the map, not its score.`);
  }

  document.addEventListener("change", (e) => {
    if (e.target.id !== "wd-beside") return;
    state().page().look.moved = e.target.value;
    window.fanlight.wordsLook.looked(state().page());
    again(state().page());
  });

  window.fanlight = { ...window.fanlight, wordsChange: { show, again, said } };
})();
