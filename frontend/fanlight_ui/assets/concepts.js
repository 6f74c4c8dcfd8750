// The page on which concepts are corrected. Paints every number from a `detail` object: of the stored record at first, then of each answer of
// POST /live. One request at a time, and of what happens meanwhile only the latest. The answers stand in the address,
// and what can be undone is kept in the tab.
(() => {
  const IDLE = 350; // ms without a change before the next question is asked for
  const KEPT = 150; // ms without a change until a bar that is dragged stands in the address: putting it there costs a frame
  const AGAIN = [1000, 30000]; // ms until a question without an answer is asked again: at first, at most
  const there = (url) => (url.startsWith(window.fanlight.prefix + "/") ? url : window.fanlight.prefix + url);
  const $ = (id) => document.getElementById(id);
  const make = (tag, props = {}, ...inside) => { const e = Object.assign(document.createElement(tag), props); e.append(...inside); return e; };
  const plain = (name) => name.replace("::", " ");
  const signed = (v, n = 2) => (v > 0 ? "+" : v < 0 ? "−" : "±") + Math.abs(v).toFixed(n);
  const percent = (p) => (p > 0 && p < 0.005 ? "< 1 %" : p < 1 && p >= 0.995 ? "> 99 %" : `${Math.round(100 * p)} %`);
  const word = (v) => (typeof v === "string" ? (v === "unknown" ? "cannot tell" : v) : v.toFixed(2));
  // A page that is touched is laid out and painted anew, whether or not what it says is new.
  const text = (e, said) => { if (e.textContent !== said) e.textContent = said; };
  const attribute = (e, name, value) => { if (e.getAttribute(name) !== value) e.setAttribute(name, value); };
  const near = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  let page = null; // what is shown now

  function begin(root) {
    const held = JSON.parse(root.dataset.concepts);
    const rows = [...root.querySelectorAll(".co-row")].sort((a, b) => a.dataset.concept - b.dataset.concept);
    page = {
      ...held, root, rows, own: held.detail.answers, session: crypto.randomUUID?.() ?? String(Math.random()), seq: 0, busy: false, again: false,
      steps: [{ answers: held.detail.answers, best: best(held.detail) }], at: 0, chosen: null, maps: {}, drawn: [], showing: false, order: [...$("co-rows").children], timer: 0,
    };
    paint(held.detail, held.summary);
    const last = page.detail.answers.at(-1)?.[0];
    select(last ?? strongest(), last !== undefined);
    const given = fromAddress() ?? page.own, told = window.fanlight.steps.recall(page.record);
    if (told && near(told.steps[0].answers, page.own) && near(told.steps[told.at].answers, given)) {
      Object.assign(page, told);
      controls();
    } else if (!near(given, page.own)) return step(given);
    if (near(now(), page.own)) suggest(); else ask();
  }

  // --- state

  const now = () => page.steps[page.at].answers;
  const answer = (k) => now().find(([c]) => c === k)?.[1];
  const best = (detail) => { const c = detail.classes[0]; return c && { name: c.name, p: c.p, was: c.was }; };
  const strongest = () => { const s = influence(page.detail); return s.indexOf(Math.max(...s)); };
  function influence(detail) {
    const [yd, yt, nd, nt] = detail.effects;
    if (yd) return yd.map((v, k) => Math.max(Math.abs(v + yt[k]), Math.abs(nd[k] + nt[k])));
    return (detail.share ?? detail.p.map((p) => p - 0.5)).map(Math.abs);
  }

  // The answers with one more, or one less (null). What may be there takes back another yes of its group: they exclude each other.
  function changed(k, value) {
    const group = page.exclusive.find((g) => g.includes(k)) ?? [];
    const there = value === "yes" || typeof value === "number";
    const kept = now().filter(([c, v]) => c !== k && !(there && v === "yes" && group.includes(c)));
    return value === null ? kept : [...kept, [k, value]];
  }

  // `drag`: the same step goes on until the bar is let go.
  function step(answers, drag = false) {
    if (drag && page.dragging) page.steps[page.at] = { answers };
    else { page.steps = [...page.steps.slice(0, page.at + 1), { answers }]; page.at += 1; }
    page.dragging = drag;
    moved();
  }
  function walk(by) {
    const to = Math.min(page.steps.length - 1, Math.max(0, page.at + by));
    if (to === page.at) return;
    page.at = to;
    moved();
  }
  function moved() { ask(); controls(); remember(); }
  function remember() {
    clearTimeout(page.keeping);
    page.keeping = setTimeout(kept, page.dragging ? KEPT : 0);
  }
  function kept() {
    if (!page?.keeping) return;
    clearTimeout(page.keeping);
    page.keeping = 0;
    address();
    keepSteps();
  }
  function keepSteps() {
    if (page.dragging) return; // it is kept with the answer to where the bar is let go
    const over = Math.max(0, Math.min(page.at - 1, page.steps.length - window.fanlight.steps.MOST)); // the oldest go, the first stays
    window.fanlight.steps.keep(page.record, { steps: [page.steps[0], ...page.steps.slice(1 + over)], at: page.at - over });
  }

  function address() {
    const query = new URLSearchParams(location.search);
    if (near(now(), page.own)) query.delete("answers"); else query.set("answers", now().map(([k, v]) => `${k}:${v}`).join(","));
    history.replaceState(history.state, "", location.pathname + (query.size ? `?${query}` : "") + location.hash);
  }
  function fromAddress() {
    const text = new URLSearchParams(location.search).get("answers");
    if (text === null) return null;
    const found = text.split(",").filter(Boolean).map((part) => {
      const [k, v] = part.split(":");
      return [Number(k), ["yes", "no", "unknown"].includes(v) ? v : Number(v)];
    });
    return found.every(([k, v]) => Number.isInteger(k) && k >= 0 && k < page.names.length && (typeof v === "string" || (v >= 0 && v <= 1))) ? found : null;
  }

  // --- asking

  const edits = () => [...page.pixels, ...now().map(([k, v]) => ({ set_concept: { concept: k, value: v } }))];
  async function post(path, body) {
    const headers = { "content-type": "application/json", accept: "application/json" };
    const answer = await fetch(`${window.fanlight.prefix}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) }).catch(() => null);
    const said = await answer?.json().catch(() => null);
    if (!answer?.ok) throw Object.assign(new Error(said?.error?.message ?? "The server does not answer."), { code: said?.error?.code });
    return said;
  }

  async function ask() {
    clearTimeout(page.timer);
    if (page.busy) { page.again = true; return; }
    const mine = page, wanted = now();
    mine.busy = true;
    try {
      const panel = await post("/live", { session: mine.session, explanation: mine.record, edits: edits(), seq: ++mine.seq });
      if (page !== mine) return;
      mine.good = wanted;
      problem("");
      for (const s of mine.steps) if (s.answers === wanted) s.best = best(panel.detail);
      paint(panel.detail, panel.summary);
      if (now() === wanted) remember();
    } catch (e) {
      if (page !== mine) return;
      if (e.code !== "superseded") refused(wanted, e.message);
    } finally {
      mine.busy = false;
      if (page === mine) {
        if (mine.again) { mine.again = false; ask(); } else mine.timer = setTimeout(suggest, IDLE);
      }
    }
  }
  // What cannot be meant is said and taken back; everything before stays.
  function refused(wanted, message) {
    problem(message);
    if (!mine_is(wanted)) return;
    page.steps.splice(page.at, 1);
    page.at = Math.max(0, page.at - 1);
    if (!page.steps.length) page.steps = [{ answers: page.own }];
    page.dragging = false;
    remember();
    paint(page.detail, page.summary);
  }
  const mine_is = (answers) => now() === answers && page.at > 0;
  function problem(text) {
    $("co-problem").replaceChildren(...(text ? [make("div", { className: "notice" }, make("p", { textContent: text }))] : []));
  }

  async function suggest() {
    if (!page || page.busy) return;
    const mine = page, seq = ++mine.seq;
    const found = await post("/live", { session: mine.session, explanation: mine.record, edits: edits(), seq, suggest: true }).catch((problem) => ({ problem }));
    if (page !== mine || mine.seq !== seq) return;
    if (found.problem) return later(found.problem);
    mine.wait = AGAIN[0];
    questions(found.suggestion);
  }
  // Without an answer the page says why, and asks again by itself: what stood there belongs to other answers.
  function later(problem) {
    const wait = page.wait ?? AGAIN[0];
    page.wait = Math.min(2 * wait, AGAIN[1]);
    page.timer = setTimeout(suggest, wait);
    $("co-questions").replaceChildren();
    $("co-questions-said").textContent = `The next question could not be computed. ${problem.message} It is asked again in ${wait / 1000} s.`;
  }

  // --- painting

  function paint(detail, summary) {
    page.detail = detail;
    page.summary = summary;
    const said = new Map(now());
    page.rows.forEach((row, k) => drawRow(row, k, detail, said));
    const others = detail.p.filter((p, k) => !said.has(k) && Math.abs(p - detail.was[k]) >= 0.05).length;
    text($("co-moved"), said.size ? `You answered ${said.size}; ${others} ${others === 1 ? "other moved" : "others moved"} by 0.05 or more.` : "");
    $("co-classes").replaceChildren(...detail.classes.map(klass));
    text($("co-reason"), summary);
    text($("co-unusual"), detail.unusual);
    $("co-unusual").hidden = !detail.unusual;
    const error = Math.max(...detail.classes.map((c) => c.error));
    $("co-draws").textContent = detail.samples ? `Classes are means over ${detail.samples} draws of the concepts, give or take ${(100 * error).toFixed(1)} points.` : "Classes are computed without draws.";
    if (detail.against.length) $("co-draws").append(` The answer on ${detail.against.map((k) => plain(page.names[k])).join(", ")} pulls the others the wrong way: the model was surer than the percentile.`);
    $("co-cases").replaceChildren(make("ul", {}, ...detail.cases.map((c) => make("li", { textContent: `reference case ${c.case}, ${c.name}: distance ${c.distance.toFixed(3)}` }))));
    controls();
    together();
  }

  function drawRow(row, k, detail, said) {
    const p = detail.p[k], was = detail.was[k], by = p - was, set = said.has(k), bar = row.children[2];
    const places = `--p:${p.toFixed(3)};--was:${was.toFixed(3)};--lo:${detail.lo[k].toFixed(3)};--hi:${detail.hi[k].toFixed(3)}`;
    if (page.drawn[k] !== places) bar.style.cssText = page.drawn[k] = places;
    attribute(bar, "aria-valuenow", p.toFixed(2));
    attribute(bar, "aria-valuetext", `${p.toFixed(2)}${set ? ", answered" : ""}${Math.abs(by) >= 0.005 ? `, was ${was.toFixed(2)}` : ""}`);
    row.classList.toggle("moved", Math.abs(by) >= 0.01);
    text(row.children[3], p.toFixed(2));
    text(row.children[4], set ? (said.get(k) === "unknown" ? "unknown" : "set") : Math.abs(by) >= 0.005 ? signed(by) : "");
    attribute(row.children[4], "class", `co-move${set ? " set" : by > 0 ? " up" : " down"}`);
  }

  function klass(c, i) {
    const track = make("span", { className: "track" }, make("span", { className: "level" }));
    track.setAttribute("aria-hidden", "true");
    track.style.setProperty("--p", c.p);
    track.style.setProperty("--was", c.was);
    if (Math.abs(c.p - c.was) >= 0.0005 || now().length) track.append(make("span", { className: "before" }));
    const was = now().length ? [" ", make("span", { className: "was", textContent: `was ${percent(c.was)}` })] : [];
    return make("li", { className: i ? "" : "first" }, make("span", { className: "name", textContent: c.name }), make("span", { className: "number" }, percent(c.p), ...was), track);
  }

  // What depends on the answers alone, so that it changes with the click.
  function controls() {
    const said = new Map(now()), dirty = !near(now(), page.own);
    page.rows.forEach((row, k) => {
      const value = said.get(k), shown = value === undefined ? "" : value;
      row.classList.toggle("said", said.has(k));
      const radios = [...row.children[1].children], on = radios.findIndex((r) => r.dataset.answer === shown);
      radios.forEach((radio, i) => {
        attribute(radio, "aria-checked", String(i === on));
        attribute(radio, "tabindex", i === Math.max(0, on) ? "0" : "-1");
      });
    });
    $("co-undo").disabled = page.at === 0;
    $("co-redo").disabled = page.at === page.steps.length - 1;
    $("co-save").disabled = !dirty || !now().length;
    text($("co-state"), dirty ? "unsaved" : page.own.length ? "saved" : "as the model saw it");
    const first = now()[0];
    text($("co-title"), first === undefined ? "What does it see?" : `What if ${supposed(...first)}${now().length > 1 ? `, and ${now().length - 1} more` : ""}?`);
    steps();
  }
  // "the crest is not long", "spotted is there"
  function supposed(k, value) {
    const [group, own] = page.names[k].includes("::") ? page.names[k].split("::") : [null, page.names[k]];
    const how = { yes: "", no: "not ", unknown: "perhaps " }[value] ?? "";
    const odds = typeof value === "number" ? ` (${value.toFixed(2)})` : "";
    return group ? `the ${group} is ${how}${own}${odds}` : `${own} is ${how}there${odds}`;
  }
  function steps() {
    const list = $("co-steps");
    while (list.children.length > page.steps.length) list.firstChild.remove(); // the newest is first
    page.steps.forEach((s, i) => {
      if (list.children.length <= i) {
        const button = make("button", { className: "plain" });
        button.dataset.step = i;
        list.prepend(make("li", {}, button));
      }
      const item = list.children[list.children.length - 1 - i];
      text(item.firstChild, past(s, i));
      if (i === page.at) attribute(item, "aria-current", "step"); else item.removeAttribute("aria-current");
    });
  }
  function past(s, i) {
    const before = page.steps[i - 1]?.answers ?? [], fresh = s.answers.filter(([k, v]) => !before.some(([c, w]) => c === k && w === v));
    const told = i === 0 ? (s.answers.length ? "as it was saved" : "as the model saw it") : fresh.length ? fresh.map(([k, v]) => `${plain(page.names[k])}: ${word(v)}`).join(", ") : "taken back";
    return told + (s.best ? ` · ${s.best.name} ${percent(s.best.p)}` : "");
  }

  function questions({ questions: every, certainty, of }) {
    const found = every.filter((q) => q.gain >= 0.0005); // less is the noise of the draws
    const list = found.map(({ concept, gain }) => {
      const ways = [["yes", "yes"], ["no", "no"], ["cannot tell", "unknown"]].map(([text, value]) => {
        const b = make("button", { className: "co-quick", textContent: text });
        b.dataset.quick = `${concept}:${value}`;
        b.setAttribute("aria-label", `${plain(page.names[concept])}: ${text}`);
        return b;
      });
      const name = make("button", { className: "plain", textContent: `${plain(page.names[concept])}?` });
      name.dataset.goto = concept;
      return make("li", {}, name, make("span", { className: "num quiet", textContent: `${signed(100 * gain, 1)} points` }), make("span", { className: "co-ways" }, ...ways));
    });
    $("co-questions").replaceChildren(make("ul", { className: "co-asked" }, ...list));
    $("co-questions-said").textContent = found.length
      ? `Expected rise of the best class's probability, ${percent(certainty)} now; the best of the ${of} most uncertain.`
      : every.length ? "No single answer is expected to make the best class more certain." : "Nothing is left to ask about.";
  }

  function together() {
    const k = page.chosen, d = page.detail;
    if (k === null) return;
    $("co-selected").textContent = `${plain(page.names[k])} goes with`;
    const parts = (d.together[k] ?? []).map(([j, r]) => {
      const b = make("button", { className: "plain", textContent: plain(page.names[j]) });
      b.dataset.goto = j;
      return make("li", {}, b, make("span", { className: `num ${r > 0 ? "up" : "down"}`, textContent: signed(r) }));
    });
    const shown = parts.length ? [make("ul", { className: "co-pairs" }, ...parts)] : [make("p", { textContent: "This model states no correlation: an answer moves no other concept." })];
    const e = d.effects;
    if (e.length) {
      const told = (i) => `${signed(e[i][k] + e[i + 1][k])} (${signed(e[i][k])} directly, ${signed(e[i + 1][k])} through others)`;
      shown.push(make("p", { className: "quiet", textContent: `Of the logit of ${page.target}, before any answer: yes ${told(0)}, no ${told(2)}.` }));
    }
    if (parts.length) shown.push(make("p", { className: "quiet", textContent: "Correlation of the logits, given this picture." }));
    $("co-together").replaceChildren(...shown);
  }

  // --- the selected concept and where the network sees it

  function select(k, scroll) {
    page.chosen = k;
    page.rows.forEach((row, i) => {
      row.classList.toggle("selected", i === k);
      row.children[0].setAttribute("aria-pressed", String(i === k));
    });
    if (scroll) page.rows[k].scrollIntoView({ block: "nearest" });
    together();
    evidence();
  }

  async function evidence() {
    const k = page.chosen, name = plain(page.names[k]), mine = page, said = $("co-evidence"), over = $("co-over"), method = $("co-method");
    if (!method) { said.textContent = mine.pixels.length ? "Where a concept is seen is shown for whole pictures only." : `Selected: ${name}.`; return; }
    said.replaceChildren("Evidence for ", make("strong", { textContent: name }));
    over.hidden = true;
    $("co-scale").hidden = true;
    if (!mine.showing) return;
    said.append(`: asking ${method.selectedOptions[0].textContent} …`);
    const key = `${k} ${method.value}`;
    mine.maps[key] ??= map(k, method.value);
    const found = await mine.maps[key].catch((e) => ({ problem: e.message }));
    if (found.problem) delete mine.maps[key];
    if (page !== mine || mine.chosen !== k || method.value !== key.slice(String(k).length + 1)) return;
    if (found.problem) { said.append(` ${found.problem}`); return; }
    over.src = found.src;
    over.hidden = false;
    const link = make("a", { href: `${window.fanlight.prefix}/e/${found.id}`, textContent: "its record says how far to trust it" });
    said.replaceChildren("Evidence for ", make("strong", { textContent: name }), `: ${found.sentence} `, link, ".");
    const { lo, hi, lo_label, hi_label, unit, stops } = found.legend, scale = $("co-scale");
    const colours = make("span", { className: "colours" });
    colours.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
    const ends = make("span", { textContent: `${lo_label} ${lo.toPrecision(2)} · ${unit} · ${hi.toPrecision(2)} ${hi_label}`.trim() });
    scale.replaceChildren(colours, ends);
    scale.hidden = false;
  }
  async function map(k, explainer) {
    let record = await post("/explanations?wait=10", { model: page.model, input: page.input, explainer, target: { concept: k }, params: {}, seed: 0 });
    while (["queued", "running"].includes(record.state)) {
      await new Promise((done) => setTimeout(done, 500));
      record = await fetch(`${window.fanlight.prefix}/api/v1/explanations/${record.id}`).then((r) => r.json());
    }
    const ref = record.artifacts?.find((a) => a.kind === "image-map");
    if (!ref) throw new Error(record.error?.message ?? `It was ${record.state}.`);
    const about = await fetch(there(ref.url)).then((r) => r.json());
    const src = `${there(ref.url)}/render.png`;
    await Object.assign(new Image(), { src }).decode().catch(() => null);
    return { id: record.id, src, legend: about.legend, sentence: about.sentence.replace(page.names[k], plain(page.names[k])).replace(/\.$/, ";") };
  }

  // --- keeping

  async function save() {
    let made = await post("/interventions?wait=10", { explanation: page.record, edits: edits() });
    while (["queued", "running"].includes(made.state)) {
      await new Promise((done) => setTimeout(done, 300));
      made = await fetch(`${window.fanlight.prefix}/api/v1/explanations/${made.id}`).then((r) => r.json());
    }
    if (made.state !== "succeeded") throw new Error(made.error?.message ?? `It was ${made.state}.`);
    return made.id;
  }
  async function keep(then, button) {
    button.disabled = true;
    kept();
    try { await then(await (near(now(), page.own) ? page.record : save())); } catch (e) { problem(e.message); } finally { button.disabled = false; }
  }
  window.addEventListener("pagehide", kept);
  const open = (id) => window.fanlight.go(`${window.fanlight.prefix}/e/${id}/concepts`);
  function share(id) { // of what is shown: unsaved answers are saved first
    if (id !== page.record) { page.own = now(); controls(); }
    dash_clientside.set_props("ex-id", { data: id });
    dash_clientside.set_props("ex-share-made", { children: null });
    dash_clientside.set_props("ex-share-dialog", { opened: true });
  }

  // --- hands

  const within = (e) => page && page.root.isConnected && page.root.contains(e.target);
  const concept = (e) => { const row = e.target.closest(".co-row"); return row ? Number(row.dataset.concept) : null; };
  function sort(by) {
    const box = $("co-rows"), d = page.detail;
    for (const b of document.querySelectorAll(".co-sort")) b.setAttribute("aria-pressed", String(b.dataset.sort === by));
    box.classList.toggle("flat", by !== "group");
    if (by === "group") { box.append(...page.order); return; }
    const score = by === "uncertain" ? d.p.map((p) => -Math.abs(p - 0.5)) : influence(d);
    const heads = page.order.filter((e) => !e.classList.contains("co-row"));
    box.append(...heads, ...page.rows.map((row, k) => [score[k], row]).sort((a, b) => b[0] - a[0]).map(([, row]) => row));
    box.scrollTop = 0;
  }

  document.addEventListener("click", (e) => {
    if (!within(e)) return;
    const on = (selector) => e.target.closest(selector);
    let hit;
    if ((hit = on("[data-answer]"))) { select(concept(e), false); step(changed(concept(e), hit.dataset.answer || null)); }
    else if (on(".co-name")) { page.showing ||= Boolean($("co-method")); select(concept(e), false); }
    else if ((hit = on("[data-quick]"))) { const [k, v] = hit.dataset.quick.split(":"); select(Number(k), true); step(changed(Number(k), v)); }
    else if ((hit = on("[data-goto]"))) select(Number(hit.dataset.goto), true);
    else if ((hit = on("[data-step]"))) walk(Number(hit.dataset.step) - page.at);
    else if ((hit = on(".co-sort"))) sort(hit.dataset.sort);
    else if (on("#co-where")) { page.showing = true; evidence(); }
    else if (on("#co-undo")) walk(-1);
    else if (on("#co-redo")) walk(1);
    else if ((hit = on("#co-save"))) keep(open, hit);
    else if ((hit = on("#co-share"))) keep(share, hit);
  });
  document.addEventListener("change", (e) => { if (within(e) && e.target.id === "co-method") { page.showing = true; evidence(); } });

  // The bar: the pointer sets where it is let go of; while it moves, the last place counts.
  let held = null;
  const place = (e, bar) => { const b = bar.getBoundingClientRect(); return Math.round(100 * Math.min(1, Math.max(0, (e.clientX - b.left) / b.width))) / 100; };
  const soft = (p) => (p <= 0 ? "no" : p >= 1 ? "yes" : p);
  document.addEventListener("pointerdown", (e) => {
    const bar = within(e) && e.button === 0 && e.target.closest(".co-bar");
    if (!bar) return;
    e.preventDefault();
    bar.focus({ preventScroll: true });
    bar.setPointerCapture?.(e.pointerId);
    held = { bar, k: Number(bar.parentElement.dataset.concept) };
    if (page.chosen !== held.k) select(held.k, false);
    page.dragging = false;
    step(changed(held.k, soft(place(e, bar))), true);
  });
  document.addEventListener("pointermove", (e) => {
    if (!held || !page) return;
    const value = soft(place(e, held.bar));
    if (value !== answer(held.k)) step(changed(held.k, value), true);
  });
  for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => { if (held && page) page.dragging = false; held = null; });

  const WORDS = { y: "yes", n: "no", u: "unknown", m: null };
  document.addEventListener("keydown", (e) => {
    if (!page || !page.root.isConnected) return;
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "z" && !e.target.closest?.("input, textarea")) {
      e.preventDefault();
      return walk(e.shiftKey ? 1 : -1);
    }
    if (e.ctrlKey || e.metaKey || e.altKey || !within(e)) return;
    const row = e.target.closest(".co-row");
    if (!row) return;
    const k = Number(row.dataset.concept), bar = e.target.closest(".co-bar"), radios = e.target.closest(".co-answer");
    const handled = () => { e.preventDefault(); e.stopPropagation(); };
    if (e.key in WORDS) { handled(); select(k, false); return step(changed(k, WORDS[e.key])); }
    const down = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (down) {
      handled();
      const all = [...$("co-rows").querySelectorAll(".co-row")], next = all[all.indexOf(row) + down];
      if (!next) return;
      const to = radios ? next.querySelector("[role=radio][tabindex='0']") : bar ? next.children[2] : next.children[0];
      to.focus();
      return select(Number(next.dataset.concept), true);
    }
    const side = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (radios && side) {
      handled();
      const every = [...radios.children], to = every[(every.indexOf(e.target) + side + every.length) % every.length];
      to.focus();
      return step(changed(k, to.dataset.answer || null));
    }
    const by = { ArrowRight: 0.01, ArrowLeft: -0.01, PageUp: 0.1, PageDown: -0.1, Home: -1, End: 1 }[e.key];
    if (bar && by) {
      handled();
      if (page.chosen !== k) select(k, false);
      const going = page.keyed === k; // the keys of one row are one step
      page.dragging = going;
      step(changed(k, soft(Math.round(100 * Math.min(1, Math.max(0, page.detail.p[k] + by))) / 100)), true);
      page.keyed = k;
    }
  }, true);
  document.addEventListener("focusout", () => { if (page) page.keyed = null; });

  new MutationObserver(() => {
    const root = $("co-page");
    if (root === page?.root) return;
    if (page?.keeping) { clearTimeout(page.keeping); keepSteps(); } // the address is another page's by now
    if (!root) page = null;
    else if (root.querySelector(".co-row")) begin(root);
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
