// Without this the page is complete: it only lets the map fade, so that the picture beneath can be seen.
for (const fade of document.querySelectorAll(".fade")) {
  const map = document.querySelector(`#map-${fade.dataset.of} img`), under = document.querySelector(`#seen-${fade.dataset.of} img`).cloneNode();
  under.alt = "";
  map.before(under);
  fade.querySelector("input").addEventListener("input", (event) => { map.style.opacity = event.target.value / 100; });
  fade.hidden = false;
}
