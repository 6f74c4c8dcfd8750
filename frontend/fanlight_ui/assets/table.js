// Loads the grid's code where a table is shown, then lets the server place the table.
(() => {
  const loaded = new Map();
  function load(url) {
    if (!loaded.has(url)) {
      loaded.set(url, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        Object.assign(script, { src: url, onload: resolve, onerror: reject });
        document.head.append(script);
      }));
    }
    return loaded.get(url);
  }
  new MutationObserver(async () => {
    const place = document.querySelector("#table[data-scripts]:not([data-asked])");
    if (!place) return;
    place.dataset.asked = "true";
    try {
      for (const url of place.dataset.scripts.split(" ")) await load(url);
      dash_clientside.set_props("grid-ready", { data: true });
    } catch {
      loaded.clear();
      place.textContent = "The table could not be loaded. Reload the page, or show the list as cards.";
    }
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
