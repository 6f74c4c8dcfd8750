// A prompt on the workbench: stored before it is asked about, so that the same words are the same input. assets/workbench.js says in
// window.fanlight.asking what the prompt is and whether it is stored.
(() => {
  const $ = (id) => document.getElementById(id);
  let busy = false;

  function say(text, bad = false) {
    const out = $("wb-prompt-said");
    if (out) { out.textContent = text; out.classList.toggle("bad", bad); }
  }

  async function store(asking) {
    const { text, picture } = asking;
    const body = JSON.stringify({ kind: "prompt", value: picture ? { text, picture } : text });
    const headers = { "content-type": "application/json", accept: "application/json" };
    const answer = await fetch(`${window.fanlight.prefix}/api/v1/inputs`, { method: "POST", headers, body }).catch(() => null);
    const said = await answer?.json().catch(() => null);
    if (answer?.ok) return said;
    const { message, hint } = said?.error ?? { message: "The server does not answer. Try again in a moment." };
    say([message, hint].filter(Boolean).join(" "), true);
    return null;
  }

  // The button waits for the words; then it is pressed again, with what it asks about.
  document.addEventListener("click", async (e) => {
    const asking = window.fanlight.asking;
    if (!e.target.closest?.("#wb-go:enabled") || !asking || asking.input) return;
    e.preventDefault();
    e.stopImmediatePropagation();
    if (busy || !asking.text) return;
    busy = true;
    window.fanlight.pointed = e.detail > 0;
    say("Sending the words …");
    const stored = await store(asking);
    busy = false;
    if (!stored) return;
    say("");
    dash_clientside.set_props("wb-prompted", { data: stored });
    for (let i = 0; i < 200 && window.fanlight.asking && !window.fanlight.asking.input; i++) await new Promise((done) => setTimeout(done, 10));
    if (window.fanlight.asking?.input === stored.id) $("wb-go").click();
    window.fanlight.pointed = false;
  }, true);

  document.addEventListener("keydown", (e) => {
    if (e.target.id !== "wb-prompt" || e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    const go = $("wb-go");
    if (!go.disabled) go.click();
    else say(e.target.value.trim() ? "Choose a method, and a picture where it is one of yours." : "Write what should be in the picture.", true);
  });
  document.addEventListener("input", (e) => {
    if (e.target.id !== "wb-prompt") return;
    const most = Number($("wb-prompt-said").dataset.longest), over = e.target.value.length - most;
    if (over > 0) say(`A prompt has ${most.toLocaleString("en")} letters at most; this one has ${over.toLocaleString("en")} more.`, true); else say("Enter explains it.");
  });
  document.addEventListener("click", (e) => {
    const chip = e.target.closest?.("[data-prompt]");
    if (!chip) return;
    dash_clientside.set_props("wb-prompt", { value: chip.dataset.prompt });
    say("Enter explains it.");
    $("wb-prompt").focus();
  });
})();
