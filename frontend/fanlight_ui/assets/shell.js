// What the frame does without asking the server: current link, "/" for the search, walking a list by keyboard, the tour.
(() => {
  const config = JSON.parse(document.getElementById("_dash-config").textContent);
  const prefix = config.requests_pathname_prefix.replace(/\/$/, "");
  const $ = (id) => document.getElementById(id);

  // Goes to a page without loading the document again; Dash's own location listens for this.
  function go(url) {
    history.pushState({}, "", url);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    scrollTo(0, 0);
  }
  window.fanlight = { ...window.fanlight, go, prefix };

  function mark_current() {
    const path = location.pathname.slice(prefix.length) || "/";
    for (const link of document.querySelectorAll("a.nav")) {
      const own = new URL(link.href).pathname.slice(prefix.length) || "/";
      const current = own === "/" ? path === "/" || path.startsWith("/e/") : own === "/data" ? path === own || /^\/(sweeps|studies)/.test(path) : path === own || path.startsWith(own + "/");
      if (current) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    const box = $("search");
    if (box && document.activeElement !== box) {
      const asked = path === "/" ? new URLSearchParams(location.search).get("q") ?? "" : "";
      if (box.value !== asked && window.dash_clientside?.set_props) dash_clientside.set_props("search", { value: asked });
    }
  }

  let announced = document.title;
  new MutationObserver(() => {
    mark_current();
    mark_scheme();
    const filters = $("filters");
    if (filters && !filters.dataset.seen) {
      filters.dataset.seen = "true";
      if (innerWidth < 900) filters.open = false;
    }
    if (document.title !== announced && $("live")) {
      announced = document.title;
      $("live").textContent = announced;
    }
  }).observe(document.documentElement, { childList: true, subtree: true });
  addEventListener("_dashprivate_pushstate", () => setTimeout(mark_current));
  addEventListener("popstate", () => setTimeout(mark_current));

  // Forms that only change the address.
  document.addEventListener("submit", (e) => {
    const form = e.target.closest("form[data-go]");
    if (!form) return;
    e.preventDefault();
    const given = new URLSearchParams([...new FormData(form)].map(([k, v]) => [k, v.trim()]).filter(([, v]) => v));
    document.activeElement?.blur();
    go(new URL(form.action).pathname + (given.size ? "?" + given : ""));
  });

  // Light and dark. Mantine reads the same attribute and the same key.
  const SCHEME = "mantine-color-scheme-value";
  const prefers_dark = matchMedia("(prefers-color-scheme: dark)");
  const kept = (key, value) => {
    try {
      if (value === undefined) return localStorage.getItem(key);
      if (value === null) localStorage.removeItem(key); else localStorage.setItem(key, value);
    } catch { /* storage may be forbidden: then it lasts for this page */ }
  };
  const applied = () => document.documentElement.dataset.mantineColorScheme ?? (prefers_dark.matches ? "dark" : "light");
  function choose(scheme) {
    kept(SCHEME, scheme === "auto" ? null : scheme);
    document.documentElement.dataset.mantineColorScheme = scheme === "auto" ? (prefers_dark.matches ? "dark" : "light") : scheme;
    mark_scheme();
  }
  function mark_scheme() {
    const chosen = kept(SCHEME) ?? "auto";
    for (const button of document.querySelectorAll("[data-scheme]")) {
      const pressed = String(button.dataset.scheme === chosen);
      if (button.getAttribute("aria-pressed") !== pressed) button.setAttribute("aria-pressed", pressed);
    }
  }
  prefers_dark.addEventListener("change", () => { if (!kept(SCHEME)) choose("auto"); });
  document.addEventListener("click", (e) => {
    if (e.target.closest("#scheme")) return choose(applied() === "dark" ? "light" : "dark");
    const button = e.target.closest("[data-scheme]");
    if (button) choose(button.dataset.scheme);
  });

  // A menu closes on Escape, on a choice, and when somebody turns to something else.
  const close_menus = (but) => {
    for (const menu of document.querySelectorAll("details[data-menu][open]")) if (!menu.contains(but)) menu.open = false;
  };
  document.addEventListener("click", (e) => close_menus(e.target.closest("a") ? null : e.target));
  document.addEventListener("focusin", (e) => close_menus(e.target));
  document.addEventListener("keydown", (e) => {
    const menu = e.key === "Escape" && e.target.closest?.("details[data-menu][open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });

  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    const typing = e.target.closest?.("input, textarea, select, [contenteditable=true], [role=slider], [role=grid], [role=dialog]");
    if (e.key === "Escape" && e.target.id === "search") return e.target.blur();
    if (typing) return;
    if (e.key === "/") {
      e.preventDefault();
      $("search")?.focus();
      return;
    }
    const step = { j: 1, ArrowRight: 1, k: -1, ArrowLeft: -1 }[e.key];
    const items = [...document.querySelectorAll("[data-walk] [data-item]")];
    if (!step || !items.length) return;
    const at = items.indexOf(document.activeElement.closest?.("[data-item]"));
    const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, at + step))];
    (next.matches("a, button") ? next : next.querySelector("a, button")).focus();
    next.scrollIntoView({ block: "nearest" });
    e.preventDefault();
  });

  // The tour.
  const KEY = "fanlight-tour";
  function show(step) {
    const steps = [...document.querySelectorAll("#tour .step")];
    steps.forEach((s, i) => { s.hidden = i !== step; });
    $("tour").dataset.at = step;
    $("tour-place").textContent = `${step + 1} of ${steps.length}`;
    $("tour-next").textContent = step === steps.length - 1 ? "Done" : "Next";
    $("tour").hidden = false;
  }
  function end() { $("tour").hidden = true; kept(KEY, "done"); }
  document.addEventListener("click", (e) => {
    if (e.target.closest("#tour-dismiss")) return end();
    if (e.target.closest("#tour-reset")) { kept(KEY, null); return show(0); }
    if (!e.target.closest("#tour-next")) return;
    const at = Number($("tour").dataset.at) + 1;
    if (at >= document.querySelectorAll("#tour .step").length) end(); else show(at);
  });
  const waiting = setInterval(() => {
    if (!$("tour")) return;
    clearInterval(waiting);
    if (!kept(KEY)) show(0);
  }, 100);
})();
