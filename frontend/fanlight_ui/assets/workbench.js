// What the workbench does without asking the server first: frames at once, the address, the choice of a picture.
(() => {
  const none = () => dash_clientside.no_update;
  const MOST = 4;
  const node = (type, props) => ({ namespace: "dash_html_components", type, props });

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    workbench: {
      choose_sample(clicks) {
        const id = dash_clientside.callback_context.triggered_id;
        if (!id || !clicks.some(Boolean)) return [none(), none()];
        const [width, height] = id.size.split("x").map(Number);
        const url = `${window.fanlight.prefix}/api/v1/inputs/${id.input}/image.png?size=512`;
        for (const b of document.querySelectorAll(".sample")) b.removeAttribute("aria-pressed");
        document.activeElement?.closest?.(".sample")?.setAttribute("aria-pressed", "true");
        return [{ id: id.input, name: id.name, width, height, notes: [] }, url];
      },

      show_input(input, methods) {
        const about = input?.id ? [input.name, `${input.width}\u00a0×\u00a0${input.height}\u00a0px`, ...(input.notes ?? [])].filter(Boolean).join(" · ") : "";
        return [!input, !!input, about, !input?.id || !methods?.length];
      },

      limit(methods) {
        return methods.length > MOST ? methods.slice(-MOST) : none();
      },

      address(model, input, methods, target, minus, seed, dataset, values, flags, kept, ids, flagIds, defaults) {
        const params = {};
        const set = (id, value) => {
          const usual = (defaults ?? {})[id.scope]?.[id.name];
          if (usual === undefined || value === usual || value === "" || value == null || !methods.includes(id.scope)) return;
          (params[id.scope] ??= {})[id.name] = value;
        };
        ids.forEach((id, i) => set(id, values[i]));
        flagIds.forEach((id, i) => set(id, flags[i]));
        const whole = (v) => (v === null || v === undefined || v === "" ? null : Number(v));
        const choice = {
          model, input: input?.id ?? null, explainers: methods ?? [], target: whole(target), minus: whole(minus), seed: whole(seed) ?? 0, params,
          results: kept.map((k) => k?.id).filter(Boolean),
        };
        const query = new URLSearchParams();
        const put = (name, value) => { if (value !== null && value !== undefined && value !== "") query.set(name, value); };
        put("model", choice.model);
        put("input", choice.input);
        put("dataset", dataset);
        put("explainers", choice.explainers.join(","));
        put("target", choice.target);
        put("minus", choice.minus);
        put("params", Object.keys(params).length ? JSON.stringify(params) : "");
        put("seed", choice.seed || "");
        put("results", choice.results.join(","));
        if (location.pathname === window.fanlight.prefix + "/explain") history.replaceState(history.state, "", `?${query}`);
        return choice;
      },

      start(clicks, choice, titles) {
        if (!clicks || !choice?.input) return Array(4).fill(Array(MOST).fill(none())).concat([none()]);
        const asked = choice.explainers.slice(0, MOST);
        const runs = [], hidden = [], frames = [];
        for (let i = 0; i < MOST; i++) {
          const name = asked[i];
          runs.push(name ? { ...choice, explainer: name, params: choice.params[name] ?? {}, turn: clicks } : none());
          hidden.push(!name);
          frames.push(name ? node("P", { className: "asking", children: `Asking for ${titles[name] ?? name} …` }) : null);
        }
        if (matchMedia("(max-width: 760px)").matches) setTimeout(() => document.getElementById("wb-stage").scrollIntoView(), 50);
        return [runs, hidden, frames, Array(MOST).fill(null), "stage asked"];
      },

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
