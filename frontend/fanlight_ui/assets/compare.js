// Comparison: choosing explanations in a list, and what its page keeps in the address.
(() => {
  const KEY = "fanlight-compare", MOST = 4;
  const chosen = () => { try { return JSON.parse(sessionStorage.getItem(KEY)) ?? []; } catch { return []; } };
  let memory = null; // where storage is forbidden
  const read = () => memory ?? chosen();
  function keep(ids) {
    try { sessionStorage.setItem(KEY, JSON.stringify(ids)); memory = null; } catch { memory = ids; }
    paint();
  }

  // The tray and the marks on the cards follow the choice; cards come and go with the pages.
  function paint() {
    const ids = read(), tray = document.getElementById("compare-tray");
    for (const card of document.querySelectorAll(".cards [data-item]")) {
      const button = card.querySelector("[data-pick]");
      if (!button) continue;
      const pressed = String(ids.includes(button.dataset.pick));
      if (button.getAttribute("aria-pressed") !== pressed) button.setAttribute("aria-pressed", pressed);
    }
    if (!tray) return;
    const link = tray.querySelector("a"), said = tray.querySelector("output");
    const words = ids.length === 0 ? "" : ids.length === 1 ? "1 chosen; choose another one to compare" : `${ids.length} chosen${ids.length === MOST ? ", as many as fit" : ""}`;
    if (tray.hidden !== !ids.length) tray.hidden = !ids.length;
    if (said.textContent !== words) said.textContent = words;
    const address = `${window.fanlight.prefix}/compare?ids=${ids.join(",")}`;
    if (link.getAttribute("href") !== address) link.setAttribute("href", address);
    if (link.hidden !== ids.length < 2) link.hidden = ids.length < 2;
  }
  function toggle(id) {
    const ids = read();
    if (ids.includes(id)) return keep(ids.filter((i) => i !== id));
    keep([...ids.slice(ids.length >= MOST ? 1 : 0), id]);
  }

  document.addEventListener("click", (e) => {
    const button = e.target.closest?.("[data-pick]");
    if (button) { e.preventDefault(); e.stopPropagation(); return toggle(button.dataset.pick); }
    if (e.target.closest?.("#compare-clear")) return keep([]);
    const link = e.target.closest?.("#compare-tray a");
    if (link && !e.ctrlKey && !e.metaKey && !e.shiftKey) { e.preventDefault(); window.fanlight.go(link.getAttribute("href")); }
  }, true);
  document.addEventListener("keydown", (e) => {
    if (e.key !== "c" || e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, textarea, select, [role=dialog]")) return;
    const button = e.target.closest?.("[data-item]")?.querySelector("[data-pick]");
    if (button) { e.preventDefault(); toggle(button.dataset.pick); }
  });
  new MutationObserver(paint).observe(document.documentElement, { childList: true, subtree: true });

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    compare: {
      opacity(value) {
        document.documentElement.style.setProperty("--overlay", value / 100);
        if (location.pathname !== window.fanlight.prefix + "/compare") return;
        const query = new URLSearchParams(location.search);
        if (value === 80) query.delete("opacity"); else query.set("opacity", value);
        history.replaceState(history.state, "", `?${query.toString().replaceAll("%2C", ",")}`);
      },
    },
  });
})();
