// A point of the plot of a sweep opens its explanation; previous and next then follow the points as they are listed.
(() => {
  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    sweeps: {
      open(clicked) {
        const id = clicked?.points?.[0]?.customdata;
        if (typeof id === "string") window.fanlight.go(`${window.fanlight.prefix}/e/${id}`);
        return dash_clientside.no_update;
      },
      addressed(id) { // the rule that is shown is in the address, so that a reload shows it again
        const query = new URLSearchParams(location.search);
        if (id) query.set("trial", id); else query.delete("trial");
        history.replaceState(history.state, "", location.pathname + (query.size ? `?${query}` : ""));
        return dash_clientside.no_update;
      },
    },
  });
})();
