// Moves the bars and words of the jobs page with each event; what a job says when it changes its state comes from the server.
addEventListener("fanlight:event", ({ detail: job }) => {
  if (job.type !== "job" || !["queued", "running"].includes(job.state)) return;
  // The list may be of another moment than the event: a job that is not on the page has nothing to move.
  if (!document.getElementById(JSON.stringify({ job: job.id, type: "job-bar" }))) return;
  const time = (s) => (s < 90 ? `${Math.max(1, Math.round(s))} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`);
  const left = job.seconds_left == null ? "" : `about ${time(job.seconds_left)} left`;
  const place = job.place ? `${job.place} before it in the queue` : "next in the queue";
  const said = job.state === "queued" ? [place, left] : [job.message || "running", `${Math.round(100 * job.progress)} %`, left];
  dash_clientside.set_props({ type: "job-bar", job: job.id }, { value: String(job.progress) });
  dash_clientside.set_props({ type: "job-words", job: job.id }, { children: said.filter(Boolean).join(" · ") });
});
