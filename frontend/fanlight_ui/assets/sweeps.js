// A point of the plot of a sweep opens its explanation; previous and next then follow the points as they are listed.
(() => {
  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    sweeps: {
      open(clicked) {
        const id = clicked?.points?.[0]?.customdata;
        if (typeof id === "string") window.fanlight.go(`${window.fanlight.prefix}/e/${id}`);
        return dash_clientside.no_update;
      },
    },
  });
})();
