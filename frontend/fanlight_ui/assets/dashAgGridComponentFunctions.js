// Cell renderers for the tables; dash-ag-grid looks them up by name.
window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {};

window.dashAgGridComponentFunctions.RecordLink = (props) => {
  if (!props.data) return "…";
  const open = (e) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
    e.preventDefault();
    const all = [];
    props.api.forEachNode((row) => { if (row.data) all.push(row.data.href); });
    window.fanlight.walk(all);
    window.fanlight.go(props.data.href);
  };
  return React.createElement("a", { href: props.data.href, onClick: open }, props.value);
};
