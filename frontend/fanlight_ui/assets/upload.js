// Pictures come in by button, drop, paste or camera and go to the API at once. Elements: [data-upload] holds data-into (id of the
// store that gets the answer), data-preview (id of the image) and a [data-upload-status]; [data-upload-pick] is a button.
(() => {
  const zone = () => document.querySelector("[data-upload]");
  let running = null;
  let shown = "", before = ""; // addresses: of the picture that was sent last, and of what is shown while another is on its way

  // Dash has no file input; these two stand outside of what it draws.
  const inputs = Object.fromEntries(["file", "camera"].map((name) => {
    const input = Object.assign(document.createElement("input"), { type: "file", accept: "image/*", hidden: true, id: `upload-${name}` });
    if (name === "camera") input.setAttribute("capture", "environment");
    input.setAttribute("aria-label", name === "camera" ? "Take a picture" : "Choose a picture");
    input.addEventListener("change", () => {
      if (zone() && input.files.length) send(input.files[0]);
      input.value = ""; // so that the same file can be chosen again
    });
    document.body.append(input);
    return [name, input];
  }));

  function say(text, bad = false) {
    const out = zone()?.querySelector("[data-upload-status]");
    if (out) { out.textContent = text; out.classList.toggle("bad", bad); }
  }

  function sentence(request) {
    try {
      const { message, hint } = JSON.parse(request.responseText).error;
      return [message, hint].filter(Boolean).join(" ");
    } catch {
      return request.status ? `The server refused the file (${request.status}).` : "The server does not answer. Try again in a moment.";
    }
  }

  function send(file) {
    const { into, preview } = zone().dataset;
    running?.abort();
    const request = (running = new XMLHttpRequest());
    const mine = URL.createObjectURL(file);
    // Shown, but not there yet: nothing can be asked about it. This goes past Dash, which would be busy with it when the answer comes.
    window.fanlight.sending = true;
    const picture = document.getElementById(preview), hint = document.getElementById("wb-hint"), go = document.getElementById("wb-go");
    if (!picture.src.startsWith("blob:") || picture.src === shown) before = picture.src; // not one that is itself still on its way
    Object.assign(picture, { src: mine, hidden: false });
    if (hint) hint.hidden = true;
    if (go) go.disabled = true;
    const settle = (data) => {
      window.fanlight.sending = false;
      dash_clientside.set_props(into, { data });
      // Dash hears of the preview when that is done, unless something else is shown by then.
      const last = picture.src;
      setTimeout(() => { if (picture.isConnected && picture.src === last) dash_clientside.set_props(preview, { src: last }); }, 100);
    };
    say(`Sending ${file.name || "the picture"} …`);
    request.upload.onprogress = (e) => {
      if (e.lengthComputable) say(e.loaded < e.total ? `Sending: ${Math.round((100 * e.loaded) / e.total)} %` : "Reading the picture …");
    };
    // What was chosen before stands again beside the refusal; assets/workbench.js remembers it.
    const refused = () => {
      say(sentence(request), true);
      if (picture.src === mine) picture.src = before;
      URL.revokeObjectURL(mine);
      settle(window.fanlight.chosen ? { ...window.fanlight.chosen } : null);
    };
    request.onabort = () => URL.revokeObjectURL(mine);
    request.onload = () => {
      if (request.status >= 400) return refused();
      URL.revokeObjectURL(shown);
      shown = mine;
      say("");
      settle(JSON.parse(request.responseText));
    };
    request.onerror = refused;
    const body = new FormData();
    body.append("file", file, file.name || "pasted.png");
    request.open("POST", window.fanlight.prefix + "/api/v1/inputs");
    request.setRequestHeader("Accept", "application/json");
    request.send(body);
  }

  const first = (list) => list?.[0];

  document.addEventListener("click", (e) => {
    const button = e.target.closest?.("[data-upload-pick]");
    if (button) inputs[button.dataset.uploadPick].click();
  });
  document.addEventListener("paste", (e) => {
    const file = first(e.clipboardData?.files);
    if (zone() && file) { e.preventDefault(); send(file); }
  });
  for (const kind of ["dragover", "drop", "dragleave"]) {
    document.addEventListener(kind, (e) => {
      const at = zone();
      if (!at || (kind !== "dragleave" && ![...(e.dataTransfer?.types ?? [])].includes("Files"))) return;
      if (kind !== "dragleave") e.preventDefault(); // anywhere on the page, or the browser would leave it to show the file
      at.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && first(e.dataTransfer.files)) send(first(e.dataTransfer.files));
    });
  }
})();
