// From here the page lives.
startFilter();
startTables();
startExplorers();
startCharts();
startTheme();
applyFilter();
window.addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  applyTheme(false);
});
window.addEventListener("afterprint", () => applyTheme());
