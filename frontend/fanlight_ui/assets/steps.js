// What was changed on a page, step by step, so that undo and redo outlive a reload: in this tab alone, under the record that was changed.
// The address holds what is shown; steps that do not lead to that are forgotten.
(() => {
  const MOST = 200; // steps of one record
  const key = (record) => `fanlight-steps:${record}`;
  window.fanlight = {
    ...window.fanlight,
    steps: {
      MOST,
      keep(record, steps) {
        try { sessionStorage.setItem(key(record), JSON.stringify(steps)); } catch { /* forbidden or full: they last until the page is left */ }
      },
      recall(record) {
        try { return JSON.parse(sessionStorage.getItem(key(record))); } catch { return null; }
      },
    },
  };
})();
