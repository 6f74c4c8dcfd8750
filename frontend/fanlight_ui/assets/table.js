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
    // The words that hold the place go when the grid comes; another list brings new ones.
    const words = document.querySelector("#table[data-scripts] > p:not([data-asked])");
    if (!words) return;
    words.dataset.asked = "true";
    try {
      for (const url of words.parentElement.dataset.scripts.split(" ")) await load(url);
      dash_clientside.set_props("grid-ready", { data: true });
    } catch {
      loaded.clear();
      words.textContent = "The table could not be loaded. Reload the page, or show the list as cards.";
    }
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
