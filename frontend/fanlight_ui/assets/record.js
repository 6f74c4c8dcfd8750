// Small things on an explanation: drawing a rectangle on the picture, copying a text, previous and next by key.
(() => {
  // [data-draw] holds data-box (x0,y0,x1,y1 of the shown part, in pixels of the picture) and data-into (ids of four number fields).
  let from = null, at = null;
  const clip = (v) => Math.min(1, Math.max(0, v));
  const place = (e) => {
    const r = at.getBoundingClientRect();
    return [clip((e.clientX - r.left) / r.width), clip((e.clientY - r.top) / r.height)];
  };
  function drawn(a, b, done) {
    const [x0, x1] = [Math.min(a[0], b[0]), Math.max(a[0], b[0])], [y0, y1] = [Math.min(a[1], b[1]), Math.max(a[1], b[1])];
    Object.assign(at.querySelector(".drawn").style, { left: `${100 * x0}%`, top: `${100 * y0}%`, width: `${100 * (x1 - x0)}%`, height: `${100 * (y1 - y0)}%`, display: "block" });
    if (!done || x1 - x0 < 0.005 || y1 - y0 < 0.005) return;
    const [l, t, r, b2] = at.dataset.box.split(",").map(Number);
    const values = [l + x0 * (r - l), t + y0 * (b2 - t), l + x1 * (r - l), t + y1 * (b2 - t)];
    at.dataset.into.split(" ").forEach((id, i) => dash_clientside.set_props(id, { value: Math.round(values[i]) }));
  }
  document.addEventListener("pointerdown", (e) => {
    at = e.target.closest?.("[data-draw]");
    if (!at || e.button !== 0) return;
    e.preventDefault();
    at.setPointerCapture(e.pointerId);
    from = place(e);
  });
  document.addEventListener("pointermove", (e) => { if (from) drawn(from, place(e), false); });
  document.addEventListener("pointerup", (e) => { if (from) { drawn(from, place(e), true); from = null; } });
  document.addEventListener("pointercancel", () => { from = null; });

  // [data-copy] copies the text of the element it names; without the clipboard (plain HTTP) it selects it.
  document.addEventListener("click", async (e) => {
    const button = e.target.closest?.("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy), label = button.textContent;
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = "Copied";
    } catch {
      if (source.select) source.select(); else getSelection().selectAllChildren(source);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  });

  // A menu closes when somebody looks elsewhere.
  const close = (from) => { for (const m of document.querySelectorAll("details.menu[open]")) if (!from || !m.contains(from)) m.open = false; };
  document.addEventListener("click", (e) => close(e.target));
  document.addEventListener("focusin", (e) => close(e.target));
  document.addEventListener("keydown", (e) => { if (e.key === "Escape") close(); });

  // Previous and next in the order of the list that the explanation was opened from: a list with data-walk leaves its addresses here. The
  // gallery's goes on beyond its page: data-query says what was asked, data-at and data-next where this page and the one after it begin.
  const KEY = "fanlight-walk";
  const kept = () => { try { return JSON.parse(sessionStorage.getItem(KEY)) ?? null; } catch { return null; } };
  const keep = (walk) => { try { sessionStorage.setItem(KEY, JSON.stringify(walk)); } catch { /* then there is no previous and next */ } };
  document.addEventListener("click", (e) => {
    const link = e.target.closest?.("a"), page = link?.closest(".walked"), list = link?.closest("[data-walk]") ?? page?.querySelector("[data-walk]");
    if (!list) return;
    const all = [...new Set([...list.querySelectorAll("a[href*='/e/']")].map((a) => a.getAttribute("href")))];
    if (!all.length) return;
    if (!page) return keep({ all });
    const { query, at, next } = page.dataset, before = kept();
    // "More" leads to a page that follows the one before: both are one list.
    if (before?.query === query && at && before.all.includes(all[0])) return;
    if (before?.query === query && at && before.next === at) return keep({ query, next, all: [...before.all, ...all] });
    keep({ query, next, all });
  }, true);
  // A table, whose rows are not all in the document, says its own.
  window.fanlight = { ...window.fanlight, walk: (all) => keep({ all }) };
  function neighbours() {
    const walk = kept(), all = walk?.all ?? [];
    const here = all.indexOf(location.pathname), at = (i) => (here < 0 ? undefined : all[i]);
    if (here >= 0 && here === all.length - 1 && walk.next) further(walk);
    return [at(here - 1) ?? "", !at(here - 1), at(here + 1) ?? "", !at(here + 1)];
  }
  // At the end of a page of the gallery the next page is asked for, so that the walk goes on.
  async function further(walk) {
    const asked = new URLSearchParams({ ...JSON.parse(walk.query), cursor: walk.next, limit: 36 });
    try {
      const answer = await fetch(`${window.fanlight.prefix}/api/v1/explanations?${asked}`);
      if (!answer.ok) return;
      const page = await answer.json(), more = page.items.map((e) => `${window.fanlight.prefix}/e/${e.id}`);
      if (kept()?.next !== walk.next) return;
      keep({ ...walk, next: page.next_cursor ?? "", all: [...new Set([...walk.all, ...more])] });
      const link = document.getElementById("ex-next");
      if (link && more.length && walk.all[walk.all.length - 1] === location.pathname) dash_clientside.set_props("ex-next", { href: more[0], hidden: false });
    } catch { /* the walk ends here */ }
  }
  document.addEventListener("click", (e) => {
    const link = e.target.closest?.("a[data-go]");
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    window.fanlight.go(link.getAttribute("href"));
  });
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, textarea, select, [role=slider], [role=dialog], [role=combobox], .map")) return;
    const name = { ArrowLeft: "previous", k: "previous", ArrowRight: "next", j: "next" }[e.key];
    const link = name && document.querySelector(`a[data-go=${name}]`);
    if (link && !link.hidden) { e.preventDefault(); link.click(); }
  });

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    record: {
      nudge: (event, id) => (event && event.explanation === id ? { ...event } : dash_clientside.no_update),
      watch(shown) {
        const open = (state) => ["pending", "queued", "running"].includes(state);
        const measuring = shown?.state === "succeeded" && [shown.trust, ...Object.values(shown.checks ?? {})].some(open);
        return [!open(shown?.state) && !measuring, open(shown?.state) ? 2500 : 15000];
      },
      neighbours,
      live: (chosen) => (chosen === null || chosen === undefined ? null : { class: chosen, seq: Date.now() }),
    },
  });
})();
