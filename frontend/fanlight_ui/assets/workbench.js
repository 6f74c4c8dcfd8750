// What the workbench does without asking the server first: frames at once, the address, the choice of a picture.
(() => {
  const none = () => dash_clientside.no_update;
  const MOST = 4;
  const WAIT = 2; // seconds that an answer may take before the panel shows the job instead
  const node = (type, props) => ({ namespace: "dash_html_components", type, props });
  const turns = Array(MOST).fill(0); // of each slot, so that an answer to an earlier question is dropped
  const there = (url) => (url.startsWith(window.fanlight.prefix + "/") ? url : window.fanlight.prefix + url);

  const answered = Array(MOST).fill(null); // ids of explanations whose panel is still to be drawn
  let choice = null; // what the address says
  let byKeyboard = false;
  let framed = () => {}, frames = Promise.resolve();

  // The question goes out with the click, before anything is drawn. What the page's server draws of the answer follows the map; a
  // refusal is left to it altogether, because it has the words.
  document.addEventListener("click", (e) => {
    if (!e.target.closest?.("#wb-go:enabled") || !choice?.input) return;
    byKeyboard = e.detail === 0 && !window.fanlight.pointed; // a click without a pointer
    frames = new Promise((done) => { framed = done; });
    choice = { ...choice, results: [] }; // those were of the question before
    for (let slot = 0; slot < MOST; slot++) {
      turns[slot] += 1;
      answered[slot] = null;
      const explainer = choice.explainers[slot];
      if (explainer) ask(slot, { ...choice, explainer, params: choice.params[explainer] ?? {}, turn: turns[slot] });
    }
  }, true);

  async function ask(slot, run) {
    const { model, input, explainer, params, seed, target, minus } = run;
    const wanted = target === null || minus === null || target === minus ? target : { minus: [target, minus] };
    const body = JSON.stringify({ model, input, explainer, params, seed, target: wanted });
    const headers = { "content-type": "application/json", accept: "application/json" };
    const answer = await fetch(`${window.fanlight.prefix}/api/v1/explanations?wait=${WAIT}`, { method: "POST", headers, body })
      .then((r) => (r.ok ? r.json() : null)).catch(() => null);
    const shown = answer?.state === "succeeded" ? pictures(answer) : null;
    await frames;
    const dropped = () => run.turn !== turns[slot] || !document.getElementById(`{"slot":${slot},"type":"panel"}`);
    if (dropped()) return;
    answered[slot] = answer?.id ?? null;
    write({ results: [...new Set([...choice.results, ...answered].filter(Boolean))].join(",") }); // so that a reload has it
    if (shown) {
      dash_clientside.set_props({ type: "panel", slot }, { children: [shown.view] });
      await Promise.race([shown.loaded, new Promise((done) => setTimeout(done, 1000))]);
    }
    if (dropped()) {
      if (run.turn === turns[slot]) answered[slot] = null;
      return;
    }
    dash_clientside.set_props({ type: "run", slot }, { data: { ...run, id: answer?.id ?? null } });
  }

  // Whoever asks sees what comes: the Explain button may stand far below the results. The keyboard goes on from their heading.
  function toResults() {
    const results = document.getElementById("wb-results");
    if (!results) return;
    if (byKeyboard) results.focus({ preventScroll: true });
    const column = results.parentElement, at = column.getBoundingClientRect();
    if (at.top >= 0 && at.top + Math.min(at.height, 240) <= innerHeight) return;
    column.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" });
  }

  // Puts values into the address in place of the old ones, which does not load the page again; empty ones are left out.
  function write(values) {
    if (location.pathname !== window.fanlight.prefix + "/explain") return;
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(values)) if (value === "" || value == null) query.delete(name); else query.set(name, value);
    history.replaceState(history.state, "", `?${query}`);
  }

  // The map as soon as it is there; its scale, words and table come with the panel. fanlight_ui/views/base.py names the same pictures.
  function pictures(record) {
    const map = record.artifacts.find((a) => a.kind === "image-map" || a.kind === "region-scores");
    if (!map) return null;
    const box = map.meta.box, query = new URLSearchParams({ box: box.map((v) => Number(v.toPrecision(6))).join(","), size: 512 });
    const layers = [
      { src: `${there(map.url)}/render.png`, alt: "", className: "over" },
      { src: `${window.fanlight.prefix}/api/v1/inputs/${record.input}/image.jpg?${query}`, alt: "", className: "under" },
    ];
    const loaded = Promise.all(layers.map(({ src }) => Object.assign(new Image(), { src }).decode().catch(() => null)));
    const style = { aspectRatio: `${box[2] - box[0]} / ${box[3] - box[1]}` };
    const inside = node("Div", { className: "map", style, children: layers.reverse().map((l) => node("Img", l)) });
    // Two frames, so that it is on the screen before the rest is drawn.
    const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return { view: node("Div", { className: "view", children: [inside] }), loaded: loaded.then(frame) };
  }

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    workbench: {
      choose_sample(clicks) {
        const id = dash_clientside.callback_context.triggered_id;
        if (!id || !clicks.some(Boolean)) return [none(), none()];
        const [width, height] = id.size.split("x").map(Number);
        const url = `${window.fanlight.prefix}/api/v1/inputs/${id.input}/image.jpg?size=512`;
        for (const b of document.querySelectorAll(".sample")) b.removeAttribute("aria-pressed");
        document.querySelector("[data-upload-status].bad")?.replaceChildren(); // a refusal was of another picture
        document.activeElement?.closest?.(".sample")?.setAttribute("aria-pressed", "true");
        return [{ id: id.input, name: id.name, width, height, notes: [] }, url];
      },

      limit(methods) {
        return methods.length > MOST ? methods.slice(-MOST) : none();
      },

      address(model, input, methods, target, minus, seed, dataset, values, flags, kept, takes, text, source, prompted, ids, flagIds, defaults) {
        window.fanlight.chosen = input; // and stays so where another picture is refused
        if (window.fanlight.sending) input = {}; // it is on its way
        const params = {};
        const set = (id, value) => {
          const usual = (defaults ?? {})[id.scope]?.[id.name];
          if (usual === undefined || value === usual || value === "" || value == null || !methods.includes(id.scope)) return;
          (params[id.scope] ??= {})[id.name] = value;
        };
        ids.forEach((id, i) => set(id, values[i]));
        flagIds.forEach((id, i) => set(id, flags[i]));
        const whole = (v) => (v === null || v === undefined || v === "" ? null : Number(v));
        kept.forEach((k, i) => { if (k?.id) answered[i] = null; });
        // Of a model that draws the input is the stored prompt; until it is stored, the words are what the address holds.
        const words = (text ?? "").split(/\s+/).filter(Boolean).join(" "), draws = takes === "prompt", own = draws && source === "own";
        const asked = !draws ? input : prompted?.text === words && (prompted.picture ?? null) === (own ? input?.id ?? null : null) ? prompted : null;
        window.fanlight.asking = draws ? { text: words, picture: own ? input?.id ?? null : null, input: asked?.id ?? null } : null;
        choice = {
          model, input: asked?.id ?? null, explainers: methods ?? [], target: whole(target), minus: whole(minus), seed: whole(seed) ?? 0, params,
          results: kept.map((k, i) => k?.id ?? answered[i]).filter(Boolean),
        };
        write({
          model, input: choice.input, prompt: draws && !asked ? words : "", dataset, explainers: choice.explainers.join(","), target: choice.target, minus: choice.minus,
          params: Object.keys(params).length ? JSON.stringify(params) : "", seed: choice.seed || "", results: choice.results.join(","),
        });
        const about = input?.id ? [input.name, `${input.width}\u00a0×\u00a0${input.height}\u00a0px`, ...(input.notes ?? [])].filter(Boolean).join(" · ") : "";
        const ready = draws ? words && (!own || input?.id) : input?.id;
        const shown = [!input || (draws && !own), !!input || (draws && !own), !ready || !methods?.length];
        // assets/upload.js shows a picture that is on its way without asking: what it changed is set here, too.
        ["wb-picture", "wb-hint"].forEach((id, i) => { document.getElementById(id).hidden = shown[i]; });
        document.getElementById("wb-go").disabled = shown[2];
        document.getElementById("wb-about").textContent = draws && !own ? "" : about; // Dash says the same, after it has been through the whole page
        const drawn = words ? `“${words}”` : "Write a prompt: the model draws it, and says which word put what where.";
        return [choice, shown[0], shown[1], draws && !own ? "" : about, shown[2], !draws || own, drawn, !draws, draws && !own, draws];
      },

      start(clicks, choice, titles, kept) {
        setTimeout(framed); // once what is returned here is there
        if (!clicks || !choice?.input) return Array(3).fill(Array(MOST).fill(none())).concat([none()]);
        const asked = choice.explainers.slice(0, MOST);
        const hidden = [], frames = [];
        for (let i = 0; i < MOST; i++) {
          const name = asked[i];
          hidden.push(!name);
          frames.push(name ? node("P", { className: "asking", children: `Asking for ${titles[name] ?? name} …` }) : null);
        }
        setTimeout(toResults, 50); // once the frames have their size
        return [hidden, frames, kept.map((k) => (k ? null : none())), "stage asked"];
      },

      // A button that has just been drawn was not pressed.
      stop: (clicks) => clicks || none(),

      // An event of the stream concerns a panel where it names its job or its explanation.
      nudge(event, kept) {
        return kept.map((k) => (k?.id && event && k.id === event.explanation ? { ...event } : none()));
      },

      // Polling is the net under the stream: it runs only while something is awaited, and slowly where that is only the trust.
      watch(kept) {
        const open = (state) => ["pending", "queued", "running"].includes(state);
        const job = kept.map((k) => !!k?.id && open(k.state)), trust = kept.map((k) => k?.state === "succeeded" && open(k.trust));
        return [kept.map((_, i) => !job[i] && !trust[i]), job.map((j) => (j ? 2500 : 15000))];
      },

      // A map alone is on its own scale already.
      scales(shared, kept) {
        return kept.filter((k) => k?.legend).length > 1 ? { shared, kept } : none();
      },

      opacity(value) {
        document.documentElement.style.setProperty("--overlay", value / 100);
      },
    },
  });
})();
