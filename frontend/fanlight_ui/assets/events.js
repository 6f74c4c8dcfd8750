// One event stream per tab. Each event goes into the store "events"; where the job of an event changed its state, also into "transitions".
(() => {
  const config = JSON.parse(document.getElementById("_dash-config").textContent);
  const api = config.requests_pathname_prefix + "api/v1";
  const POLL = 2000, GAP = 120, PATIENCE = 15000, SETTLED = 1000;
  const TERMINAL = ["succeeded", "failed", "cancelled", "expired"];
  const waiting = new Map(); // the newest event of each job and trust record; an older one would be out of date
  const states = new Map();
  let source = null, timer = null, polling = null, settling = null, failed = 0;

  const ready = () => window.dash_clientside?.set_props && document.getElementById("live");

  function flush() {
    timer = null;
    if (!waiting.size) return;
    if (ready()) {
      const [key, event] = waiting.entries().next().value;
      waiting.delete(key);
      dash_clientside.set_props("events", { data: event });
      if (states.get(key) !== event.state) {
        states.set(key, event.state);
        dash_clientside.set_props("transitions", { data: event });
        settling ??= setTimeout(settle, SETTLED);
      }
      // For a page's own JavaScript.
      window.dispatchEvent(new CustomEvent("fanlight:event", { detail: event }));
    }
    if (waiting.size) timer = setTimeout(flush, GAP);
  }

  // For what only counts: once for all that happens within a second, and not while somebody waits for the answer itself.
  function settle() {
    settling = null;
    dash_clientside.set_props("settled", { data: Date.now() });
  }

  function take(event) {
    if (event?.type === "refresh") return location.reload(); // away for longer than events are kept
    if (event?.type !== "job" && event?.type !== "trust") return;
    const key = event.type + ":" + (event.id ?? event.explanation);
    waiting.delete(key);
    waiting.set(key, event);
    timer ??= setTimeout(flush, 0);
  }

  async function poll() {
    try {
      const answer = await fetch(api + "/jobs?limit=100", { headers: { accept: "application/json" } });
      if (!answer.ok) return;
      for (const job of (await answer.json()).items) {
        const key = "job:" + job.id;
        if (!TERMINAL.includes(job.state) || (states.has(key) && states.get(key) !== job.state)) take({ type: "job", ...job });
      }
    } catch { /* asked again soon */ }
  }

  function listen() {
    source = new EventSource(api + "/events");
    source.onopen = () => { failed = 0; clearInterval(polling); polling = null; };
    source.onmessage = (message) => { try { take(JSON.parse(message.data)); } catch { /* a comment or a heartbeat */ } };
    for (const type of ["job", "trust"]) source.addEventListener(type, source.onmessage);
    source.onerror = () => {
      failed += 1;
      // A browser connects again by itself, but gives up for good where the answer is no stream at all.
      const over = source.readyState === EventSource.CLOSED;
      if ((over || failed > 1) && polling === null) polling = setInterval(poll, POLL);
      if (over) setTimeout(listen, PATIENCE);
    };
  }

  listen();
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (e) => { if (e.persisted) listen(); });
})();
