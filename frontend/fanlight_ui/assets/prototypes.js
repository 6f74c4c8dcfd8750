// The page of prototypes: paints every number from a `detail` of the server, at first and after every change, which it sends itself. One request
// at a time, and of changes that came meanwhile only the last. What was changed is in the address and what can be
// undone in the tab, so that a reload loses nothing.
(() => {
  let page = null; // of what is shown now

  const $ = (name, root = document.getElementById("pt-page")) => root?.querySelector(`[data-pt="${name}"]`);
  const minus = (text) => text.replace("-", "\u2212");
  const number = (v, n = 2) => minus(Math.abs(v) < 0.5 * 10 ** -n ? (0).toFixed(n) : v.toFixed(n));
  const percent = (v) => (v > 0 && v < 0.005 ? "< 1 %" : v < 1 && v > 0.995 ? "> 99 %" : `${Math.round(100 * v)} %`);
  const listed = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const set = (node, text) => { if (node && node.textContent !== text) node.textContent = text; };
  function make(tag, { text, data, ...props } = {}, ...inside) {
    const node = Object.assign(document.createElement(tag), props);
    if (text !== undefined) node.textContent = text;
    Object.assign(node.dataset, data ?? {});
    node.append(...inside.filter(Boolean));
    return node;
  }
  const PARTS = 8; // colours, of prototypes.css

  // --- edits

  const find = (edits, kind, value) => edits.findIndex((e) => kind in e && same(e[kind], value));
  const without = (edits, kind, value) => edits.filter((e) => !(kind in e && (value === undefined || same(e[kind], value))));
  const toggled = (edits, kind, value) => (find(edits, kind, value) < 0 ? [...edits, { [kind]: value }] : without(edits, kind, value));
  const part = (edits, j, k, kind) => {
    const others = ["gate_part", "remove_part"].reduce((left, name) => without(left, name, [j, k]), edits);
    return find(edits, kind, [j, k]) < 0 ? [...others, { [kind]: [j, k] }] : others;
  };
  const against = (edits) => edits.find((e) => "why_not" in e)?.why_not ?? null;

  function change(edits) {
    if (!page.live || same(edits, page.edits)) return;
    page.past.push(page.edits);
    page.future = [];
    go(edits);
  }
  function step(from, to) {
    if (!from.length) return;
    to.push(page.edits);
    go(from.pop());
  }
  function go(edits) {
    page.edits = edits;
    ask();
    buttons();
    const mine = page;
    setTimeout(() => { if (page === mine) keep(); }); // the address costs a frame, which is the answer's
  }
  function keep() {
    const { edits } = page, query = new URLSearchParams(location.search);
    if (same(edits, page.stored)) query.delete("edits"); else query.set("edits", JSON.stringify(edits));
    history.replaceState(history.state, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
    keepSteps();
  }
  function keepSteps() {
    const { past, edits, future } = page, most = window.fanlight.steps.MOST;
    window.fanlight.steps.keep(page.id, { past: past.slice(-most), edits, future: future.slice(-most) });
  }
  function buttons() {
    document.getElementById("pt-undo").disabled = !page.past.length;
    document.getElementById("pt-redo").disabled = !page.future.length;
    document.getElementById("pt-save").disabled = !page.live || same(page.edits, page.stored);
    const chosen = against(page.edits);
    const gone = muted(), go = document.getElementById("pt-gone-go"), forget = document.getElementById("pt-forget-go");
    if (go) {
      go.disabled = forget.disabled = !gone.length;
      set(go, gone.length === 1 ? "Take it out" : "Take them out");
      set(forget, gone.length === 1 ? "Have it forget" : "Have them forget");
      set($("gone"), gone.length ? `Muted: ${listed(gone.map(String))}.` : "Nothing is muted.");
    }
    dash_clientside.set_props("pt-why", { value: chosen === null ? null : String(chosen) });
  }

  const muted = () => page.edits.filter((e) => "mute_prototype" in e).map((e) => e.mute_prototype);

  // --- asking

  const headers = { "content-type": "application/json", accept: "application/json" };
  async function post(path, body) {
    const answer = await fetch(window.fanlight.prefix + path, { method: "POST", headers, body: JSON.stringify(body) }).catch(() => null);
    const said = await answer?.json().catch(() => null);
    return answer?.ok ? { said } : { error: said?.error ?? { code: "no_server", message: "The server does not answer. Try again in a moment." } };
  }
  const live = (more) => post("/api/v1/live", { explanation: page.id, edits: [...page.fixed, ...page.edits], ...more });

  async function ask() {
    const mine = page;
    mine.again = true;
    if (mine.busy) return;
    mine.busy = true;
    while (mine.again) {
      mine.again = false;
      const sent = mine.edits;
      const { said, error } = await live({ session: mine.session, seq: ++mine.seq });
      if (page !== mine || mine.again || error?.code === "superseded") continue;
      if (error) { refused(error, mine); continue; }
      mine.good = sent;
      paint(said.detail);
    }
    mine.busy = false;
  }

  // A change that cannot be made is taken back, with the reason.
  function refused(error, mine) {
    mine.edits = mine.good;
    mine.past = mine.past.filter((e) => !same(e, mine.good));
    mine.error = error.message;
    go(mine.good);
  }

  async function near() {
    const { said, error } = await live({ session: `${page.session}n`, seq: ++page.seq, suggest: true });
    return error ? { error: error.message } : said.suggestion.nearest;
  }

  async function save() {
    const mine = page, button = document.getElementById("pt-save");
    button.disabled = true;
    set(button, "Saving …");
    const { said, error } = await post("/api/v1/interventions?wait=20", { explanation: page.id, edits: [...page.fixed, ...page.edits] });
    if (page !== mine) return null;
    set(button, "Save");
    if (error) { mine.error = error.message; buttons(); told(); return null; }
    return said.id;
  }
  const open = (id, more = "") => { location.assign(`${window.fanlight.prefix}/e/${id}/prototypes${more}`); };

  // --- painting

  function paint(detail) {
    page.detail = detail;
    const root = document.getElementById("pt-page");
    if (!root) return;
    rows($("rows"), detail.rows, "main");
    set($("sum"), `points sum to ${detail.target.minus === null ? "the logit" : "the difference of logits"} ${number(detail.total)}`);
    set($("rest"), detail.rest.count ? `the other ${detail.rest.count.toLocaleString("en")} prototypes` : "no other prototypes");
    set($("rest-points"), number(detail.rest.points));
    set($("total"), number(detail.total));
    bars(detail);
    flips(detail);
    why(detail);
    excluded();
    told();
  }

  function rows(into, list, of) {
    const there = new Map([...into.children].map((n) => [Number(n.dataset.prototype), n]));
    const nodes = list.map((row) => there.get(row.prototype) ?? build(row, of)), kept = new Set(nodes);
    for (const node of there.values()) if (!kept.has(node)) node.remove();
    nodes.forEach((node, i) => { // in the order of the list; what stands there already is not laid out anew
      if (into.children[i] !== node) into.insertBefore(node, into.children[i] ?? null);
      fill(node, list[i], of);
    });
  }

  function build(row) {
    const node = document.querySelector("#pt-template .pt-row").cloneNode(true);
    node.dataset.prototype = row.prototype;
    set($("name", node), `Prototype ${row.prototype}`);
    $("name", node).append(make("small", { className: "quiet", text: ` ${row.class_name}` }));
    $("here", node).append(make("img", { src: page.picture, alt: "" }));
    const picture = page.detail.pictures[row.prototype];
    const gone = { none: "Its class had no picture to project onto.", unavailable: "Source not on this machine." }[row.source.status];
    $("there", node).append(picture ? make("img", { src: picture, alt: "" }) : make("p", { className: "pt-gone", text: gone ?? "Source not stored here." }));
    row.parts.forEach((p) => {
      const colour = `--part: var(--part-${p.k % PARTS})`;
      for (const where of ["here", "there"]) {
        const box = make("span", { className: "pt-box", data: { part: p.k } }, make("b", { text: p.k + 1 }));
        box.style.cssText = colour;
        $(where, node).append(box);
      }
      const chip = make("button", { className: "pt-chip num", type: "button", data: { do: "chip", part: p.k } });
      chip.style.cssText = colour;
      $("chips", node).append(chip);
      const line = make("li", { data: { part: p.k } }, make("span", { className: "num", data: { pt: "part" } }),
        ...[["gate", "leave out"], ["remove", "take out, look again"], ["spot", "not this spot"]].map(([act, text]) =>
          make("button", { className: "pt-pill", type: "button", text, data: { do: act, part: p.k, label: text } })));
      line.style.cssText = colour;
      $("parts", node).append(line);
    });
    return node;
  }

  const place = (node, cell) => {
    node.hidden = !cell;
    if (cell) Object.assign(node.style, { left: `${100 * cell[0]}%`, top: `${100 * cell[1]}%`, width: `${100 * (cell[2] - cell[0])}%`, height: `${100 * (cell[3] - cell[1])}%` });
  };

  function fill(node, row, of) {
    const muted = row.state === "muted", name = `prototype ${row.prototype}`;
    node.classList.toggle("muted", muted);
    set($("points", node), number(row.points));
    set($("product", node), `${number(row.activation)} × ${number(row.weight)}`);
    const source = row.source;
    const moved = source.movement === null || source.movement === undefined ? "" : `, moved ${number(source.movement)} at projection`;
    const lacking = of === "why" ? ` ${number(row.most - row.activation)} short of a perfect match.` : "";
    set($("source", node), (source.status === "projected" || source.name ? `source: ${source.name || "a training picture"}${moved}.` : "source not known.") + lacking);
    set($("flags", node), row.flags.length ? `${listed(row.flags)}.`.replace(/^./, (c) => c.toUpperCase()) : "");
    const mute = node.querySelector('[data-do="mute"]');
    set(mute, muted ? "unmute" : "mute");
    mute.setAttribute("aria-pressed", String(muted));
    mute.setAttribute("aria-label", `${muted ? "unmute" : "mute"} ${name}`);
    node.querySelector('[data-do="parts"]').setAttribute("aria-label", `parts of ${name}`);
    node.querySelector('[data-do="near"]').setAttribute("aria-label", `nearest patches of ${name}`);
    node.querySelector('[data-do="near"]').hidden = !row.nearest.length || !page.live;
    for (const b of node.querySelectorAll('[data-do="mute"], [data-do="chip"], .pt-parts button')) b.disabled = !page.live;
    const open = [];
    for (const p of row.parts) {
      const boxes = node.querySelectorAll(`.pt-box[data-part="${p.k}"]`);
      place(boxes[0], p.state === "open" ? p.cell : null);
      place(boxes[1], p.state === "shut" ? null : p.source);
      boxes[1].classList.toggle("off", p.state !== "open");
      if (p.state === "open") open.push(`${p.k + 1}`);
      const chip = node.querySelector(`.pt-chip[data-part="${p.k}"]`), shut = p.state === "shut";
      const similar = shut ? "shut" : p.state === "removed" ? "taken out" : number(p.cos);
      if (chip.textContent !== `${p.k + 1}${similar}`) chip.replaceChildren(make("b", { text: p.k + 1 }), make("span", { text: similar }));
      chip.classList.toggle("off", p.state !== "open");
      chip.disabled = shut || !page.live;
      chip.setAttribute("aria-pressed", String(p.state === "open"));
      chip.setAttribute("aria-label", shut ? `part ${p.k + 1}: shut in training` : `part ${p.k + 1}, similarity ${number(p.cos)}${p.state === "open" ? "" : `, ${p.state === "gated" ? "left out" : "taken out"}`}`);
      chip.title = shut ? "Left out in training" : p.state === "open" ? "Leave this part out" : "Put this part back";
      const line = node.querySelector(`.pt-parts [data-part="${p.k}"]`);
      const words = { open: `${number(p.cos)}, ${number(p.points)} points`, shut: "left out in training", gated: "left out", removed: "taken out" }[p.state];
      set($("part", line), `part ${p.k + 1}: ${words}`);
      for (const b of line.querySelectorAll("button")) {
        const on = (b.dataset.do === "gate" && p.state === "gated") || (b.dataset.do === "remove" && p.state === "removed");
        set(b, on ? "put back" : b.dataset.label);
        b.setAttribute("aria-label", `${on ? "put back" : b.dataset.label}, part ${p.k + 1}`);
        b.disabled = shut || !page.live || (b.dataset.do === "spot" && p.state !== "open");
      }
    }
    const of_source = source.name ? ` (${source.name})` : "";
    $("here", node).setAttribute("aria-label", `This picture, with the ${open.length} boxes that ${name} looks at`);
    $("there", node).setAttribute("aria-label", `The training picture of ${name}${of_source}, with its boxes`);
    for (const old of $("here", node).querySelectorAll(".pt-shut")) old.remove();
    for (const cell of holes()) {
      const hole = make("span", { className: "pt-shut" });
      place(hole, cell);
      $("here", node).append(hole);
    }
  }

  // Excluded regions as shares of what the model saw.
  const holes = () => {
    const [x0, y0, x1, y1] = page.detail.box;
    return page.edits.filter((e) => e.exclude_region).map(({ exclude_region: r }) => [(r[0] - x0) / (x1 - x0), (r[1] - y0) / (y1 - y0), (r[2] - x0) / (x1 - x0), (r[3] - y0) / (y1 - y0)]);
  };

  function bars(detail) {
    const shown = [...detail.classes].sort((a, b) => b.logit - a.logit).slice(0, 5);
    const best = detail.classes.reduce((a, b) => (b.was > a.was ? b : a));
    for (const c of [detail.classes.find((d) => d.index === detail.target.index), best]) if (c && !shown.includes(c)) shown.push(c);
    const changed = Math.abs(detail.total - detail.was) > 5e-7 || detail.classes.some((c) => Math.abs(c.logit - c.was) > 5e-7);
    $("bars").replaceChildren(...shown.map((c) => {
      const level = make("span", { className: "level" }), before = make("span", { className: "before" });
      level.style.width = `${100 * c.share}%`;
      before.style.width = `${100 * c.share_was}%`;
      return make("li", { className: c.index === detail.target.index ? "explained" : "" },
        make("span", { className: "name", text: c.name, title: c.name }),
        make("span", { className: "track", ariaHidden: "true" }, level, changed && before),
        make("span", { className: "number", text: percent(c.share) }, changed && make("span", { className: "was", text: `was ${percent(c.share_was)}` })));
    }));
    const own = page.edits.filter((e) => !("why_not" in e)).length;
    set($("changed"), own ? `${own === 1 ? "One change" : `${own} changes`}: ${number(detail.was)} → ${number(detail.total)}` : "");
  }

  function flips(detail) {
    const f = detail.flip, button = document.getElementById("pt-flip");
    const names = f.mute?.map(String) ?? [];
    set($("flip"), f.margin < 0 ? `${f.name} is ahead already, by ${number(-f.margin)}.`
      : f.mute === null ? `Muting prototypes cannot put ${f.name} ahead: what is left would still be for ${detail.target.name}.`
        : `Mute prototype${names.length === 1 ? "" : "s"} ${listed(names)}: then ${f.name} by ${number(-f.after)}.`);
    button.hidden = !page.live || f.margin < 0 || !names.length;
    set(button, names.length === 1 ? "Mute it" : "Mute them");
  }

  function why(detail) {
    const c = detail.contrast;
    document.getElementById("pt-contrast").hidden = !c;
    if (!c) { $("why-rows").replaceChildren(); return; }
    if (page.contrasted !== c.class) $("why-rows").replaceChildren();
    page.contrasted = c.class;
    set($("why-title"), `Why not ${c.name}?`);
    const logit = detail.classes.find((d) => d.index === c.class)?.logit;
    set($("why-sum"), logit === undefined ? "" : `logit ${number(logit)}`);
    const names = c.mute?.map(String) ?? [];
    set($("why-said"), c.margin < 0 ? `${c.name} is ahead by ${number(-c.margin)}.`
      : `${detail.target.name} is ahead by ${number(c.margin)}. ` + (c.mute === null ? "No set of muted prototypes changes that."
        : `The fewest to mute for ${c.name} to win: ${listed(names)}; it would then be ahead by ${number(-c.after)}.`) + " Its own prototypes found this:");
    rows($("why-rows"), c.rows, "why");
  }

  function excluded() {
    const list = page.edits.filter((e) => e.exclude_region);
    $("excluded").replaceChildren(...list.map((e, n) => make("button", { className: "pt-pill", type: "button", text: `excluded spot ${n + 1} ✕`, ariaLabel: `allow excluded spot ${n + 1} again`, disabled: !page.live, data: { allow: JSON.stringify(e.exclude_region) } })));
  }

  // What a change did that nobody would expect, and what could not be done.
  function told() {
    const lines = (page.detail.raised ?? []).map((r) => {
      const parts = listed(r.parts.map((k) => String(k + 1)));
      return make("p", { className: "pt-raised", text: `Removing the weak part ${parts} of prototype ${r.prototype} raised its similarity from ${number(r.before)} to ${number(r.after)}`
        + `${r.points > 0 ? ` and the score by ${number(r.points)} points` : r.points < 0 ? `, which takes ${number(-r.points)} points away` : ""}: what is left is scaled up to four parts again.`.replace("four", String(page.detail.parts)) });
    });
    if (page.error) lines.push(make("p", { className: "warning", text: page.error }));
    page.error = null;
    $("said").replaceChildren(...lines);
  }

  // --- what people do

  async function act(button) {
    const node = button.closest(".pt-row"), j = Number(node?.dataset.prototype), k = Number(button.dataset.part);
    const kind = button.dataset.do;
    if (kind === "mute") return change(toggled(page.edits, "mute_prototype", j));
    if (kind === "gate" || kind === "remove") return change(part(page.edits, j, k, `${kind}_part`));
    if (kind === "chip") {
      const taken = find(page.edits, "remove_part", [j, k]) >= 0;
      return change(part(page.edits, j, k, taken ? "remove_part" : "gate_part"));
    }
    if (kind === "spot") {
      const rows = [...page.detail.rows, ...(page.detail.contrast?.rows ?? [])];
      const cell = rows.find((r) => r.prototype === j).parts[k].cell, [x0, y0, x1, y1] = page.detail.box;
      const at = [x0 + cell[0] * (x1 - x0), y0 + cell[1] * (y1 - y0), x0 + cell[2] * (x1 - x0), y0 + cell[3] * (y1 - y0)];
      return change([...page.edits, { exclude_region: at.map((v) => Number(v.toFixed(4))) }]);
    }
    const opened = button.getAttribute("aria-expanded") === "true", panel = $(kind, node);
    button.setAttribute("aria-expanded", String(!opened));
    panel.hidden = opened;
    if (kind !== "near" || opened || panel.childElementCount) return;
    panel.append(make("p", { className: "quiet", text: "Looking them up …" }));
    page.nearest ??= near();
    const found = await page.nearest;
    if (found.error) page.nearest = null;
    const list = found[j] ?? [];
    const row = [...page.detail.rows, ...(page.detail.contrast?.rows ?? [])].find((r) => r.prototype === j);
    panel.replaceChildren(...(found.error ? [make("p", { text: found.error })] : [
      make("p", { className: "quiet", text: "The training pictures that it is most active on, apart from its own:" }),
      ...list.map((n) => {
        const shot = make("div", { className: "pt-shot" }, n.picture ? make("img", { src: n.picture, alt: `${n.name} (${n.class_name})` }) : make("p", { className: "pt-gone", text: "Not on this machine." }));
        const cells = row?.nearest.find((m) => m.image === n.image)?.cells ?? [];
        cells.forEach((cell, i) => {
          if (row.parts[i].state === "shut") return;
          const box = make("span", { className: "pt-box" }, make("b", { text: i + 1 }));
          box.style.cssText = `--part: var(--part-${i % PARTS})`;
          place(box, cell);
          shot.append(box);
        });
        return make("figure", {}, shot, make("figcaption", { className: "quiet", text: `${n.class_name}, ${number(n.activation)}` }));
      }),
    ]));
  }

  document.addEventListener("click", async (e) => {
    if (!page || !document.getElementById("pt-page")) return;
    const button = e.target.closest?.("#pt-page button");
    if (!button || button.disabled) return;
    if (button.dataset.do) return act(button);
    if (button.dataset.allow) return change(without(page.edits, "exclude_region", JSON.parse(button.dataset.allow)));
    if (button.id === "pt-undo") return step(page.past, page.future);
    if (button.id === "pt-redo") return step(page.future, page.past);
    if (button.id === "pt-flip") {
      const list = page.detail.flip.mute.reduce((edits, j) => (find(edits, "mute_prototype", j) < 0 ? [...edits, { mute_prototype: j }] : edits), page.edits);
      return change(list);
    }
    const kind = { "pt-gone-go": "remove", "pt-forget-go": "forget" }[button.id];
    if (kind) return dash_clientside.set_props("pt-gone-asked", { data: { change: { [kind]: muted() }, at: Date.now() } });
    if (button.id === "pt-save") { const id = await save(); if (id) open(id); }
  });

  // A link shows what is stored: what is not is saved first.
  document.addEventListener("click", async (e) => {
    if (!e.target.closest?.("#pt-page #ex-share") || !page || !page.live || same(page.edits, page.stored)) return;
    e.preventDefault();
    e.stopPropagation();
    const id = await save();
    if (id) open(id, "?share=1");
  }, true);

  document.addEventListener("keydown", (e) => {
    if (!page || !document.getElementById("pt-page") || !(e.ctrlKey || e.metaKey) || e.key.toLowerCase() !== "z") return;
    if (e.target.closest?.("input, textarea")) return;
    e.preventDefault();
    if (e.shiftKey) step(page.future, page.past); else step(page.past, page.future);
  });

  // A box, its pair in the other picture and its number belong together.
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (e) => {
      for (const lit of document.querySelectorAll(".pt-row .lit")) lit.classList.remove("lit");
      const at = e.target.closest?.(".pt-row [data-part]");
      if (at) for (const twin of at.closest(".pt-row").querySelectorAll(`.pt-box[data-part="${at.dataset.part}"], .pt-chip[data-part="${at.dataset.part}"]`)) twin.classList.add("lit");
    });
  }

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    prototypes: {
      start(data) {
        if (!data) return dash_clientside.no_update;
        const session = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
        page = { ...data, session, seq: 0, past: [], future: [], good: data.stored, busy: false, again: false, nearest: null, error: null, contrasted: null };
        for (const name of ["rows", "why-rows"]) $(name)?.replaceChildren();
        const told = window.fanlight.steps.recall(data.id);
        if (told && same(told.edits, page.edits)) Object.assign(page, told);
        paint(data.detail);
        buttons();
        if (data.ask) ask();
        const query = new URLSearchParams(location.search);
        if (query.has("share")) {
          query.delete("share");
          history.replaceState(history.state, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
          setTimeout(() => document.getElementById("ex-share")?.click());
        }
        return data.id;
      },

      why(value) {
        const none = dash_clientside.no_update;
        if (!page) return none;
        const wanted = value === null || value === undefined || value === "" ? null : Number(value);
        if (wanted === against(page.edits)) return none;
        const others = without(page.edits, "why_not");
        change(wanted === null ? others : [...others, { why_not: wanted }]);
        return none;
      },
    },
  });
})();
