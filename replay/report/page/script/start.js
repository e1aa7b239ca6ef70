// From here the page lives.
startFilter();
startTables();
startExplorers();
startCharts();
startTheme();
applyFilter();
window.addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details:not(.list)")) each.open = true;
  document.body.classList.add("printing");
  applyTheme(false);
  printCharts();
});
window.addEventListener("afterprint", () => {
  document.body.classList.remove("printing");
  applyTheme();
});
