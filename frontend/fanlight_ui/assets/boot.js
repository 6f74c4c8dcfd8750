// In the head, before the first paint: somebody who chose light or dark must not see the other one flash by.
(() => {
  try {
    const chosen = localStorage.getItem("mantine-color-scheme-value");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.mantineColorScheme = chosen;
  } catch { /* storage may be forbidden: the system's preference rules */ }
})();
