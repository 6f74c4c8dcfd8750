// Pictures come in by button, drop, paste or camera and go to the API at once. Elements: [data-upload] holds
// data-into (id of the store that gets the answer), data-preview (id of the image), an input[type=file], a [data-upload-status].
(() => {
  const zone = () => document.querySelector("[data-upload]");
  let running = null;

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
    const shown = URL.createObjectURL(file);
    if (preview) dash_clientside.set_props(preview, { src: shown });
    say(`Sending ${file.name || "the picture"} …`);
    request.upload.onprogress = (e) => {
      if (e.lengthComputable) say(e.loaded < e.total ? `Sending: ${Math.round((100 * e.loaded) / e.total)} %` : "Reading the picture …");
    };
    request.onload = () => {
      if (request.status >= 400) return say(sentence(request), true);
      const input = JSON.parse(request.responseText);
      say([`${input.width} × ${input.height} px`, ...(input.notes ?? [])].join(" · "));
      dash_clientside.set_props(into, { data: { ...input, shown } });
    };
    request.onerror = () => say(sentence(request), true);
    const body = new FormData();
    body.append("file", file, file.name || "pasted.png");
    request.open("POST", window.fanlight.prefix + "/api/v1/inputs");
    request.setRequestHeader("Accept", "application/json");
    request.send(body);
  }

  const picture = (list) => [...(list ?? [])].find((f) => f.size !== undefined);

  document.addEventListener("change", (e) => {
    if (e.target.matches?.("[data-upload] input[type=file]") && picture(e.target.files)) {
      send(picture(e.target.files));
      e.target.value = ""; // so that the same file can be chosen again
    }
  });
  document.addEventListener("click", (e) => {
    const button = e.target.closest?.("[data-upload-pick]");
    if (button) zone()?.querySelector(`input[data-source=${button.dataset.uploadPick}]`)?.click();
  });
  document.addEventListener("paste", (e) => {
    const file = picture(e.clipboardData?.files);
    if (zone() && file) { e.preventDefault(); send(file); }
  });
  for (const kind of ["dragover", "drop", "dragleave"]) {
    document.addEventListener(kind, (e) => {
      const at = zone();
      if (!at || (kind !== "dragleave" && ![...(e.dataTransfer?.types ?? [])].includes("Files"))) return;
      if (kind !== "dragleave") e.preventDefault(); // anywhere on the page, or the browser would leave it to show the file
      at.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && picture(e.dataTransfer.files)) send(picture(e.dataTransfer.files));
    });
  }
})();
