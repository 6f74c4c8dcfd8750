// How probable words are, for the pointwise rule: equal, numbers of one's own, a table that is pasted, or the server's masked language model. The server
// answers with the edit (POST /explanations/{id}/probabilities); assets/words.js holds the edits.
(() => {
  const draw = () => window.fanlight.words, state = () => window.fanlight.wordsState;
  const $ = (id) => document.getElementById(id);
  const SOURCES = { equal: "equal", given: "numbers of my own", table: "a table of probabilities", counts: "a table of counts", masked: "a masked language model" };
  const MOST = 1000; // words of a table that the server takes
  const chosen = { record: null, source: null };
  let model = null; // whether the server has a language model; null: not known yet

  // What the edits say, unless another source is being filled in.
  function source(d) {
    if (chosen.source) return chosen.source;
    return d.chances === null ? "equal" : /^the masked/.test(d.source) ? "masked" : d.source ? "table" : "given";
  }

  // Lines of "word number", whatever stands between them. Only rows that the prompt can need are sent; counts are among all of them.
  function rows(text, d) {
    const wanted = new Set(d.words.flatMap(([, , word]) => [word, ...word.split(/[^\p{L}\p{N}'’-]+/u)]).map((w) => w.toLowerCase()));
    const table = {};
    let total = 0;
    for (const line of text.split("\n").map((l) => l.trim()).filter(Boolean)) {
      const [, word, value] = /^(.+?)[\s,;:]+([0-9.]+(?:e[-+]?\d+)?)$/i.exec(line) ?? [];
      if (!word || !(Number(value) > 0)) return { wrong: `“${line.slice(0, 60)}” is no word with a number above 0.` };
      total += Number(value);
      if (wanted.has(word.toLowerCase()) && Object.keys(table).length < MOST) table[word] = Number(value);
    }
    return Object.keys(table).length ? { table, total } : { wrong: "None of the words of the prompt is in the table." };
  }

  async function weigh(page) {
    const { set, node } = draw(), how = chosen.source ?? source(page.detail), said = node("chances-said");
    const asked = { source: how };
    if (how === "table" || how === "counts") {
      const { table, total, wrong } = rows($("wd-table").value, page.detail);
      if (wrong) return set(said, wrong);
      Object.assign(asked, { table }, how === "counts" ? { total } : {});
    }
    set(said, how === "masked" ? "Asking the language model; the first time it is read, which takes some seconds." : "Asking.");
    $("wd-weigh").disabled = true;
    const found = await state().call(`/explanations/${page.id}/probabilities`, asked);
    if (state().page() !== page) return;
    $("wd-weigh").disabled = false;
    if (found.error) return set(said, [found.error.message, found.error.hint].filter(Boolean).join(" "));
    chosen.source = null;
    state().ruled(found.said.edit);
  }

  function controls(page) {
    const { make } = draw();
    if (chosen.record !== page.id) Object.assign(chosen, { record: page.id, source: null });
    const select = make("select", { id: "wd-source", disabled: !page.live }, ...Object.entries(SOURCES).map(([value, text]) => make("option", { value, text })));
    select.addEventListener("change", () => {
      chosen.source = select.value;
      if (select.value === "equal") { chosen.source = null; state().ruled({ set_rule: "pointwise" }); }
      show(page);
    });
    const given = [0, 1].map(() => make("input", { type: "number", min: 0.000001, max: 1, step: "any", placeholder: "equal", disabled: !page.live }));
    for (const input of given) input.addEventListener("change", () => {
      const values = given.map((c) => c.value.trim());
      if (values.some((v) => v === "") && values.some((v) => v !== "")) return;
      chosen.source = null;
      state().ruled({ set_rule: values[0] === "" ? "pointwise" : ["pointwise", ...values.map(Number)] });
    });
    const table = make("textarea", { id: "wd-table", rows: 5, placeholder: "red 0.0004\ncircle 0.00009", disabled: !page.live });
    const button = make("button", { id: "wd-weigh", className: "button small", text: "Weigh words so", disabled: !page.live });
    button.addEventListener("click", () => weigh(page));
    $("wd-sources").replaceChildren(
      make("label", {}, "How probable words are", select),
      make("div", { id: "wd-chances" }, ...given.map((c) => make("label", {}, make("span"), c))),
      make("label", { id: "wd-listed" }, "A word and its number on each line", table), button);
  }

  async function known() {
    if (model !== null) return;
    model = false;
    const { said } = await state().call("/system");
    model = said?.settings?.word_model === true;
    if (state().page() && $("wd-source")) show(state().page());
  }

  function show(page) {
    const { set, node, number } = draw(), d = page.detail, on = d.rule === "pointwise";
    $("wd-sources").hidden = node("chances-said").hidden = !on;
    if (!on) return;
    known();
    const how = source(d), option = $("wd-source").querySelector("[value=masked]");
    $("wd-source").value = how;
    option.disabled = !model;
    set(option, model ? SOURCES.masked : `${SOURCES.masked}: this server has none`);
    $("wd-chances").hidden = how !== "given" && how !== "equal";
    $("wd-listed").hidden = how !== "table" && how !== "counts";
    $("wd-weigh").hidden = how === "equal" || how === "given";
    const inputs = [...$("wd-chances").querySelectorAll("input")], typing = inputs.includes(document.activeElement);
    inputs.forEach((input, i) => {
      set(input.previousElementSibling, `p(${d.words[d.pair[i]][2]})`);
      if (!typing) input.value = d.chances?.[i] ?? "";
    });
    if (chosen.source) return set(node("chances-said"), "");
    const every = d.probabilities?.map((p, n) => `${d.words[n][2]} ${number(p, 2)}`).join(", ");
    set(node("chances-said"), every ? `By ${d.source || "numbers of your own"}: ${every}.` : "");
  }

  window.fanlight = { ...window.fanlight, wordsChances: { controls, show } };
})();
