// Moves the waiting panels with the events of the stream. fanlight_ui/panels.py draws them and says the same in the same words.
(() => {
  const time = (s) => (s < 0.95 ? `${Math.max(s, 0.01).toPrecision(1)} s` : s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`);
  function words(job) {
    if (job.state === "queued") return job.place ? `${job.place} before it in the queue` : "Next in the queue";
    const left = job.seconds_left == null ? "" : `about ${time(job.seconds_left)} left`;
    return [job.message || "Running", `${Math.round(100 * job.progress)} %`, left].filter(Boolean).join(" · ");
  }
  addEventListener("fanlight:event", ({ detail: job }) => {
    if (job.type !== "job" || !["queued", "running"].includes(job.state)) return;
    for (const panel of document.querySelectorAll(`.waiting[data-job="${CSS.escape(job.id)}"]`)) {
      panel.querySelector(".said").textContent = words(job);
      panel.querySelector(".fill").style.width = `${100 * job.progress}%`;
      if (job.preview) {
        const seen = panel.querySelector(".preview");
        seen.src = job.preview;
        seen.hidden = false;
      }
      panel.querySelector(".meter").setAttribute("aria-valuenow", Math.round(100 * job.progress));
    }
  });
})();
