// What the visitor may not do is disabled, with the reason (may.py). Pages put their controls anew at any time, so they are looked at again then.
(() => {
  let lacks = null, due = null;

  function apply() {
    due = null;
    if (!lacks) {
      const text = document.getElementById("may")?.textContent;
      if (!text) return;
      lacks = Object.entries(JSON.parse(text));
    }
    let why = "";
    for (const [selector, reason] of lacks) {
      for (const control of document.querySelectorAll(selector)) {
        if (control.closest("main")) why = reason;
        if (control.disabled && control.dataset.may) continue;
        control.disabled = true;
        control.dataset.may = "no";
        control.title = reason;
      }
    }
    const said = document.getElementById("may-said");
    if (said && said.textContent !== why) said.textContent = why;
    if (said && said.hidden !== !why) said.hidden = !why;
  }

  new MutationObserver(() => { if (lacks === null || lacks.length) due ??= requestAnimationFrame(apply); })
    .observe(document.documentElement, { childList: true, subtree: true, characterData: true, attributes: true, attributeFilter: ["disabled"] });
})();
