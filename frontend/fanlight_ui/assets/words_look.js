// What is looked at on the page of words beyond the seven maps: any other map of the artifact, and a region that a person marks. All of it stands in the
// address (`maps`, `region`, `pale`, `each`, `opacity`) and changes nothing that is stored.
(() => {
  const draw = () => window.fanlight.words, state = () => window.fanlight.wordsState;
  const $ = (id) => document.getElementById(id);
  const MOST = 8; // other maps at a time
  const within = (v, n) => Math.min(n - 1, Math.max(0, v));

  // --- other maps: whatever the artifact names that has values on the same grid. What has an own `top` is on a scale of its own.

  const known = new WeakMap();
  function others(page) {
    const d = page.detail;
    if (known.has(d)) return known.get(d);
    const [h, w] = size(page), found = {};
    const fits = (v) => Array.isArray(v) && v.length === h && Array.isArray(v[0]) && v[0].length === w;
    for (const [key, value] of Object.entries(d)) {
      if (key === "maps" || key === "moved") continue; // these have panels of their own
      [value].flat().forEach((item, n) => {
        if (!fits(item?.values)) return;
        const word = Number.isInteger(item.word) ? d.words[item.word]?.[2] : null, base = key.replace(/_?maps?$/, "").replaceAll("_", " ");
        const what = { singles: "word", floor: "noise floor" }[base] ?? base;
        const name = Array.isArray(value) ? `${key}-${n}` : key;
        const own = Number.isFinite(item.top);
        found[name] = { ...item, name, title: word !== null && word !== undefined ? `${what}: ${word}` : item.title ? `${what}: ${item.title}` : what, own, unit: item.unit ?? (own ? "" : "nat") };
      });
    }
    known.set(d, found);
    return found;
  }
  const size = (page) => { const v = page.detail.maps[0].values; return [v.length, v[0].length]; };
  const chosen = (page) => page.look.beside.map((n) => others(page)[n]).filter(Boolean);

  function paint(page, top) {
    const { make, node, set, number, canvas, percentile, where } = draw(), d = page.detail, all = others(page), shown = chosen(page), place = node("others"), list = $("wd-add");
    list.replaceChildren(make("option", { value: "", text: shown.length >= MOST ? `${MOST} at most` : "show another map …" }),
      ...Object.values(all).filter((m) => !shown.includes(m)).map((m) => make("option", { value: m.name, text: m.title, disabled: shown.length >= MOST })));
    list.disabled = list.options.length < 2;
    if (place.dataset.key !== shown.map((m) => m.name).join()) {
      place.replaceChildren(...shown.map((m) => {
        const frame = make("div", { className: "wd-frame", tabIndex: -1, data: { map: m.name } }, make("img", { className: "wd-image under", alt: "", src: d.picture }), make("canvas", { className: "wd-paint" }), make("span", { className: "cross", ariaHidden: "true" }), make("span", { className: "pixel", ariaHidden: "true" }));
        frame.setAttribute("role", "img");
        const away = make("button", { type: "button", className: "button small", text: "Put away", data: { away: m.name } });
        away.setAttribute("aria-label", `Put away ${m.title}`);
        const caption = make("figcaption", {}, make("div", { className: "wd-caption" }, make("strong", { text: m.title }), make("span", { className: "num" })), away);
        return make("figure", { className: "card wd-map" }, frame, caption);
      }));
      place.dataset.key = shown.map((m) => m.name).join();
    }
    place.hidden = !shown.length;
    [...place.children].forEach((figure, n) => {
      const m = shown[n], own = page.look.normalise || m.own, hi = (m.own ? m.top : page.look.normalise ? percentile(m.values) : top) || 1, less = m.values.some((row) => row.some((v) => v < -hi / 100));
      canvas(figure.querySelector("canvas"), m.values, { lo: less ? -hi : 0, hi, stops: less ? d.stops.diverging : d.stops.sequential, errors: m.errors, fade: page.look.fade && !m.own });
      set(figure.querySelector(".num"), m.sum === undefined ? "" : `${number(m.sum)} ${m.unit}`);
      figure.querySelector(".wd-frame").setAttribute("aria-label", `${m.title}, ${where(m.values)}.`);
      figure.querySelector("figcaption").dataset.top = own ? `scale of its own, to ${number(hi, 2)}` : "";
    });
    marked(page);
  }

  document.addEventListener("change", (e) => {
    if (e.target.id !== "wd-add" || !e.target.value) return;
    const page = state().page();
    page.look.beside = [...page.look.beside, e.target.value];
    looked(page);
  });
  document.addEventListener("click", (e) => {
    const away = e.target.closest?.("#wd-page [data-away]");
    if (!away) return;
    const page = state().page();
    page.look.beside = page.look.beside.filter((n) => n !== away.dataset.away);
    looked(page);
    $("wd-add").focus({ preventScroll: true });
  });

  // --- a region: one truth per place

  const count = (region) => region?.reduce((n, v) => n + v, 0) ?? 0;
  function packed(page) { // width x height, then how many places are out, in, out, ... in base 36
    const region = page.look.region, [h, w] = size(page);
    if (!count(region)) return "";
    const runs = [];
    let last = 0, n = 0;
    for (const v of region) { if (v === last) n++; else { runs.push(n); last = v; n = 1; } }
    return [`${w}x${h}`, ...runs, n].map((v) => (typeof v === "number" ? v.toString(36) : v)).join(".");
  }
  function unpacked(page, text) {
    const [h, w] = size(page), [grid, ...runs] = (text ?? "").split("."), lengths = runs.map((r) => parseInt(r, 36));
    if (grid !== `${w}x${h}` || lengths.some((n) => !(n >= 0)) || lengths.reduce((s, n) => s + n, 0) !== w * h) return null;
    return Uint8Array.from(lengths.flatMap((n, i) => Array(n).fill(i % 2)));
  }

  // Sum of a map inside. Its error is at most the sum of the errors, because all places were measured with the same noise.
  function inside(page, { values, errors }) {
    const region = page.look.region, w = values[0].length;
    let sum = 0, all = 0, error = errors ? 0 : null;
    values.forEach((row, r) => row.forEach((v, c) => {
      all += v;
      if (!region[r * w + c]) return;
      sum += v;
      if (errors) error += errors[r][c];
    }));
    return { sum, all, error };
  }

  function marked(page) {
    const { make, node, set, number } = draw(), d = page.detail, [h, w] = size(page), region = page.look.region, n = count(region), root = $("wd-page");
    root.style.setProperty("--wd-region", n ? `url("${outline(region, w, h, false)}")` : "none");
    root.style.setProperty("--wd-region-only", n ? `url("${outline(region, w, h, true)}")` : "none");
    root.classList.toggle("marking", page.marking);
    $("wd-mark").setAttribute("aria-pressed", String(page.marking));
    $("wd-marking").hidden = !page.marking && !n;
    $("wd-clear").disabled = !n;
    for (const b of root.querySelectorAll("[data-brush]")) b.setAttribute("aria-pressed", String((b.dataset.brush === "out") === !!page.rubbing));
    set(node("region-said"), n ? `${n} of ${(w * h).toLocaleString("en")} places, ${number((100 * n) / (w * h), 2)} % of the picture` : "Nothing is marked: draw on the picture or a map; or Space on it marks the place under the cross.");
    exported(packed(page));
    const table = node("inside");
    if (!n) return table.replaceChildren();
    const rows = [
      ...d.singles.map((m, k) => [`“${d.words[k][2]}”`, m]),
      ...(page.chosen().length === 2 ? d.maps.filter((m) => m.name.length > 1).map((m) => [m.title, m]) : []),
      ...chosen(page).filter((m) => !m.name.startsWith("singles")).map((m) => [m.title, m]), ...(d.moved && page.redrawing() ? [["what moved", { ...d.moved, own: true }]] : []),
    ].map(([name, m]) => {
      const { sum, all, error } = inside(page, m), share = all > 0 && sum >= 0 ? `${Math.round((100 * sum) / all)} %` : "–";
      const small = (v, n) => (v && Math.abs(v) < 1e-4 ? "< 0.0001" : number(v, n)), value = m.own ? "–" : small(sum, 3);
      return make("tr", {}, make("th", { text: name, scope: "row" }), make("td", { text: value }), make("td", { text: error === null || m.own ? "–" : small(error, 2) }), make("td", { text: share }));
    });
    const head = ["", "nat inside", "± at most", "of all of it"].map((text, i) => make(i ? "th" : "td", { text, scope: i ? "col" : undefined }));
    table.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
  }

  // The border is dark beside light, to be seen on every colour. On the picture what is outside is dimmed; colours of maps are numbers and stay.
  // Files that show a region are asked for with it.
  function exported(region) {
    for (const a of document.querySelectorAll("#ex-export a")) {
      const url = new URL(a.href);
      if (!/\/export\.(html|pdf|svg|png|json)$/.test(url.pathname)) continue;
      if (region) url.searchParams.set("region", region);
      else url.searchParams.delete("region");
      a.href = url.href;
    }
  }

  function outline(region, w, h, dim) {
    const k = Math.max(4, Math.round(256 / Math.max(w, h))), made = Object.assign(document.createElement("canvas"), { width: w * k, height: h * k }), pen = made.getContext("2d");
    const on = (r, c) => r >= 0 && c >= 0 && r < h && c < w && region[r * w + c];
    pen.fillStyle = "rgba(20, 22, 26, 0.45)";
    for (let r = 0; r < h; r++) for (let c = 0; c < w; c++) if (dim && !on(r, c)) pen.fillRect(c * k, r * k, k, k);
    for (const [colour, wide] of [["#14161a", 3], ["#ffffff", 1.5]]) {
      pen.strokeStyle = colour;
      pen.lineWidth = wide;
      pen.beginPath();
      for (let r = 0; r < h; r++) for (let c = 0; c < w; c++) {
        if (!on(r, c)) continue;
        const x = c * k, y = r * k;
        if (!on(r - 1, c)) { pen.moveTo(x, y); pen.lineTo(x + k, y); }
        if (!on(r + 1, c)) { pen.moveTo(x, y + k); pen.lineTo(x + k, y + k); }
        if (!on(r, c - 1)) { pen.moveTo(x, y); pen.lineTo(x, y + k); }
        if (!on(r, c + 1)) { pen.moveTo(x + k, y); pen.lineTo(x + k, y + k); }
      }
      pen.stroke();
    }
    return made.toDataURL();
  }

  const width = () => Number($("wd-brush")?.value) || 1;
  function brush(page, [r, c], value) {
    const [h, w] = size(page), wide = width(), from = -Math.floor((wide - 1) / 2);
    page.look.region ??= new Uint8Array(h * w);
    for (let y = 0; y < wide; y++) for (let x = 0; x < wide; x++) {
      const [i, j] = [r + from + y, c + from + x];
      if (i >= 0 && j >= 0 && i < h && j < w) page.look.region[i * w + j] = value;
    }
  }
  const at = (page, frame, e) => {
    const box = frame.getBoundingClientRect(), [h, w] = size(page);
    return [within(Math.floor((h * (e.clientY - box.top)) / box.height), h), within(Math.floor((w * (e.clientX - box.left)) / box.width), w)];
  };

  let stroke = null, waiting = 0; // of the pointer that draws
  document.addEventListener("pointerdown", (e) => {
    const page = state()?.page(), frame = e.button === 0 && page?.marking && e.target.closest?.("#wd-page [data-map]");
    if (!frame) return;
    e.preventDefault();
    frame.focus({ preventScroll: true });
    stroke = { frame, last: at(page, frame, e) };
    brush(page, stroke.last, page.rubbing ? 0 : 1);
    marked(page);
  });
  document.addEventListener("pointermove", (e) => {
    if (!stroke) return;
    const page = state().page(), now = at(page, stroke.frame, e), [r, c] = stroke.last, steps = Math.max(Math.abs(now[0] - r), Math.abs(now[1] - c), 1);
    for (let i = 1; i <= steps; i++) brush(page, [Math.round(r + ((now[0] - r) * i) / steps), Math.round(c + ((now[1] - c) * i) / steps)], page.rubbing ? 0 : 1);
    stroke.last = now;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => marked(page));
  });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => {
    if (!stroke) return;
    stroke = null;
    looked(state().page());
  });
  document.addEventListener("keydown", (e) => {
    const page = state()?.page(), frame = e.key === " " && page && e.target.closest?.("#wd-page [data-map]");
    if (!frame || !page.marking) return;
    e.preventDefault();
    const [h, w] = size(page), [r, c] = (page.at ??= [h >> 1, w >> 1]);
    brush(page, [r, c], page.look.region?.[r * w + c] ? 0 : 1);
    draw().at(page);
    looked(page);
  });
  document.addEventListener("click", (e) => {
    const button = e.target.closest?.("#wd-page :is(#wd-mark, #wd-clear, #wd-box, [data-brush])"), page = button && state().page();
    if (!page) return;
    if (button.id === "wd-mark") page.marking = !page.marking;
    if (button.dataset.brush) page.rubbing = button.dataset.brush === "out";
    if (button.id === "wd-clear") { page.look.region = null; $("wd-mark").focus(); }
    if (button.id === "wd-box") {
      const [h, w] = size(page), [left, right, top, bottom] = ["left", "right", "top", "bottom"].map((n) => Number($(`wd-${n}`).value) || (n === "right" ? w : n === "bottom" ? h : 1));
      const [x0, x1] = [left, right].sort((a, b) => a - b), [y0, y1] = [top, bottom].sort((a, b) => a - b);
      page.look.region ??= new Uint8Array(h * w);
      for (let r = within(y0 - 1, h); r <= within(y1 - 1, h); r++) for (let c = within(x0 - 1, w); c <= within(x1 - 1, w); c++) page.look.region[r * w + c] = page.rubbing ? 0 : 1;
    }
    looked(page);
  });

  // --- the address

  const PLAIN = { fade: true, normalise: false, opacity: 90, beside: [], region: null, moved: null };
  function recall(page) {
    const query = new URLSearchParams(location.search), dim = Number(query.get("opacity") ?? PLAIN.opacity);
    const look = { ...PLAIN, fade: query.get("pale") !== "no", normalise: query.get("each") === "yes", opacity: dim >= 0 && dim <= 100 ? dim : PLAIN.opacity, moved: query.get("beside") };
    page.look = look;
    look.beside = (query.get("maps") ?? "").split(",").filter((n) => n in others(page)).slice(0, MOST);
    look.region = unpacked(page, query.get("region"));
    page.marking = false;
    page.rubbing = false;
    const [h, w] = size(page);
    const corners = [["left", "from column", w], ["right", "to column", w], ["top", "from row", h], ["bottom", "to row", h]];
    const { make, node } = draw();
    node("corners").replaceChildren(...corners.map(([name, text, most]) => make("label", {}, text, make("input", { id: `wd-${name}`, type: "number", min: 1, max: most, step: 1, placeholder: `1 to ${most}` }))));
    $("wd-brush").value = String([1, 2, 3, 5, 9].findLast((n) => n <= Math.max(1, Math.max(h, w) / 16)));
  }
  function looked(page) {
    const { look } = page, query = new URLSearchParams(location.search);
    const put = (name, value) => (value ? query.set(name, value) : query.delete(name));
    put("maps", look.beside.join());
    put("region", packed(page));
    put("pale", look.fade ? "" : "no");
    put("each", look.normalise ? "yes" : "");
    put("opacity", look.opacity === PLAIN.opacity ? "" : String(look.opacity));
    put("beside", look.moved);
    history.replaceState(history.state, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
    draw().paintMaps(page);
  }
  // What a link is to show beyond the record: a region, and a word that is looked at alone.
  function shared(page) {
    const view = {}, region = packed(page), chosen = page.chosen();
    if (region) view.region = region;
    if (chosen.length === 1) view.word = chosen[0];
    dash_clientside.set_props({ type: "shared-view", page: "words" }, { data: view });
  }
  document.addEventListener("click", (e) => { if (e.target.closest?.("#wd-page #ex-share, #ex-share-make") && $("wd-page") && state()?.page()) shared(state().page()); }, true);

  window.fanlight = { ...window.fanlight, wordsLook: { paint, recall, looked, others, chosen, marked } };
})();
