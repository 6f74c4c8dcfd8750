// The page of a study: which number, rule, scale and cell are shown stands in the address; the server draws the table.
(() => {
  const PLAIN = { column: "interaction", rule: "min", scale: "nats" };
  document.addEventListener("click", (e) => {
    const button = e.target.closest?.(".st-study [data-st]");
    if (!button) return;
    const query = new URLSearchParams(location.search), { st, value } = button.dataset;
    const off = st === "cell" && query.get("cell") === value;
    if (off || value === PLAIN[st]) query.delete(st); else query.set(st, value);
    history.replaceState(history.state, "", location.pathname + (query.size ? `?${query}` : ""));
    for (const b of document.querySelectorAll(`.st-study [data-st="${st}"]`)) b.setAttribute("aria-pressed", String(b === button && !off)); // at once; the numbers follow
    const view = Object.fromEntries(["column", "rule", "scale", "cell"].map((n) => [n, query.get(n)]));
    dash_clientside.set_props(st === "cell" ? "st-at" : "st-view", { data: view });
  });

  // The table is drawn anew while a study goes on: the keyboard stays on its cell.
  let held = null, watched = null;
  const again = new MutationObserver(() => { if (held && document.activeElement === document.body) document.querySelector(`.st-cell[data-value="${held}"]`)?.focus({ preventScroll: true }); });
  document.addEventListener("focusin", (e) => {
    const cell = e.target.closest?.(".st-cell"), table = cell?.closest("#st-table");
    held = cell?.dataset.value ?? null;
    if (table && table !== watched) { again.disconnect(); again.observe(table, { childList: true, subtree: true }); watched = table; }
  });
})();
