// Reads the same pixel in all linked maps, by pointer or arrow keys, from the stored float32 numbers.
// A map is an element .map with data-raw, data-signed, data-unit; its neighbours are those in the same [data-linked].
(() => {
  const arrays = new Map(); // address -> promise of { height, width, at(row, column) }

  async function read(url) {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`The numbers of this map could not be read (${answer.status}).`);
    const blob = await answer.arrayBuffer();
    const size = Number(new DataView(blob).getBigUint64(0, true));
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(blob, 8, size)));
    const array = (name, Type) => {
      const [from, to] = head[name].data_offsets;
      return new Type(blob.slice(8 + size + from, 8 + size + to)); // a copy, because the data need not be aligned
    };
    const values = array("value", Float32Array);
    const regions = head.label ? array("label", Int32Array) : null;
    const [height, width] = (head.label ?? head.value).shape;
    return { height, width, at: (r, c) => values[regions ? regions[r * width + c] : r * width + c] };
  }

  function load(url) {
    if (!arrays.has(url)) {
      const loading = read(url);
      loading.catch(() => arrays.delete(url));
      arrays.set(url, loading);
      if (arrays.size > 16) arrays.delete(arrays.keys().next().value);
    }
    return arrays.get(url);
  }

  function number(value, signed) {
    if (value === 0) return "0";
    const text = Math.abs(value) < 1e-4 ? value.toExponential(2) : Number(value.toPrecision(3)).toString();
    return (signed && value > 0 ? "+" : "") + text.replace("-", "\u2212");
  }

  const group = (map) => map.closest("[data-linked]") ?? map.parentElement;
  const maps = (map) => [...group(map).querySelectorAll(".map")];
  const within = (v, n) => Math.min(n - 1, Math.max(0, v));
  let turn = 0;

  // The place of (u, v) of one map in another: of the same picture the same pixel of it, of another picture the same place in the frame.
  function across(from, to, u, v) {
    if (!from.dataset.box || from.dataset.picture !== to.dataset.picture || from.dataset.box === to.dataset.box) return [u, v];
    const [a, b] = [from, to].map((m) => m.dataset.box.split(",").map(Number));
    return [(a[0] + u * (a[2] - a[0]) - b[0]) / (b[2] - b[0]), (a[1] + v * (a[3] - a[1]) - b[1]) / (b[3] - b[1])];
  }

  // u, v: where in this map, 0 to 1.
  async function show(map, u, v) {
    const mine = ++turn, linked = maps(map);
    const loaded = await Promise.all(linked.map((m) => load(m.dataset.raw).catch(() => null)));
    if (mine !== turn) return;
    const said = [];
    let place = "";
    linked.forEach((m, i) => {
      const a = loaded[i];
      if (!a) return;
      const [x, y] = across(map, m, u, v);
      if (m !== map && (x < 0 || y < 0 || x >= 1 || y >= 1) && m.dataset.box !== map.dataset.box) { // this model did not see that pixel
        m.classList.remove("read");
        said.push("outside");
        return;
      }
      const c = within(Math.floor(x * a.width), a.width), r = within(Math.floor(y * a.height), a.height);
      const text = number(a.at(r, c), m.dataset.signed);
      m.style.setProperty("--x", `${(100 * (c + 0.5)) / a.width}%`);
      m.style.setProperty("--y", `${(100 * (r + 0.5)) / a.height}%`);
      m.classList.add("read");
      m.querySelector(".pixel").textContent = text;
      if (m === map) { place = `pixel ${c}, ${r}`; m.dataset.at = `${c},${r}`; }
      said.push(text);
    });
    for (const out of group(map).querySelectorAll("[data-pixel]")) out.textContent = `${place}: ${said.join(" · ")}`;
  }

  function clear(map) {
    turn += 1;
    for (const m of maps(map)) m.classList.remove("read");
    for (const out of group(map).querySelectorAll("[data-pixel]")) out.textContent = "";
  }

  let frame = 0, current = null;
  document.addEventListener("pointermove", (e) => {
    const map = e.target.closest?.(".map[data-raw]");
    if (!map) {
      if (current && document.activeElement !== current) clear(current);
      current = null;
      return;
    }
    current = map;
    const box = map.getBoundingClientRect(), u = (e.clientX - box.left) / box.width, v = (e.clientY - box.top) / box.height;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => show(map, u, v));
  });

  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  let keys = Promise.resolve(); // one key after the other, also while the numbers are still being fetched

  async function move(map, step, by) {
    const a = await load(map.dataset.raw);
    const [c, r] = map.dataset.at && map.classList.contains("read") ? map.dataset.at.split(",").map(Number) : [a.width >> 1, a.height >> 1];
    await show(map, (within(c + by * step[0], a.width) + 0.5) / a.width, (within(r + by * step[1], a.height) + 0.5) / a.height);
  }

  document.addEventListener("keydown", (e) => {
    const map = e.target.closest?.(".map[data-raw]");
    if (!map || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Escape") return clear(map);
    const step = STEPS[e.key];
    if (!step) return;
    e.preventDefault();
    e.stopPropagation();
    keys = keys.then(() => move(map, step, e.shiftKey ? 10 : 1)).catch(() => { /* the numbers did not come; the next key asks again */ });
  }, true);
})();
