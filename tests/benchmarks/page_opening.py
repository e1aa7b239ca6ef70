"""How soon a report.html can be used, beside the least that a page with Plotly takes: the library and one line.

Both pages are opened in turn, so that whatever else the machine does slows both. What is told: milliseconds from the
navigation until tables sort, until the explorer and the first chart are drawn, and until all charts are; seconds of a
processor that the page's process took in all.

python tests/benchmarks/page_opening.py outputs/RUN/report.html --tries 5
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from table import markdown

from replay.report.page.library import plotly

MOMENTS = {
    "tables sort": "table.arms thead button",
    "explorer": ".explorer[data-drawn]",
    "first chart": ".chart[data-drawn]",
    "all charts": "html[data-ready]",
}
WATCH = """(moments) => {
  window.seen = {};
  const look = () => {
    for (const [name, wanted] of Object.entries(moments)) {
      if (!(name in seen) && document.querySelector(wanted)) seen[name] = performance.now();
    }
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
}"""
BARE = """<!doctype html><link rel="icon" href="data:,"><div id="plot" class="chart"></div>
<script type="text/plain" id="packed">{packed}</script><script>
const bytes = Uint8Array.from(atob(document.getElementById("packed").textContent), (each) => each.charCodeAt(0));
const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
new Response(stream).text().then(async (text) => {{
  const script = document.createElement("script");
  script.textContent = text;
  document.head.append(script);
  await Plotly.newPlot("plot", [{{ x: [1, 2], y: [3, 4] }}]);
  document.getElementById("plot").dataset.drawn = document.documentElement.dataset.ready = "";
}});
</script>"""


def opened(browser: Browser, page: Path) -> dict[str, float]:
    """Milliseconds by moment, and seconds of a processor."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    names = "{" + ", ".join(f"{name!r}: {wanted!r}" for name, wanted in MOMENTS.items()) + "}"
    tab.add_init_script(f"({WATCH})({names})")
    tab.goto(page.resolve().as_uri())
    tab.wait_for_function("'all charts' in window.seen", timeout=120_000, polling=200)
    seen: dict[str, float] = tab.evaluate("seen")
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    busy = sum(each["cpuTime"] for each in processes if each["type"] == "renderer")
    context.close()
    return seen | {"processor, s": busy}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--tries", type=int, default=5)
    asked = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        bare = Path(folder) / "bare.html"
        bare.write_text(BARE.format(packed=plotly()), encoding="utf-8")
        sizes = {str(page): page.stat().st_size for page in (bare, *asked.pages)}
        for _ in range(asked.tries):
            for page in (bare, *asked.pages):
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                found.setdefault(str(page), []).append(opened(browser, page))
                browser.close()
    rows = []
    for page, tries in found.items():
        middle = {name: statistics.median(each[name] for each in tries) for name in tries[0]}
        size = sizes[page] / 1e6
        figures = [f"{middle[name]:,.0f}" if name in middle else "" for name in MOMENTS]
        name = "Plotly and one line" if page == str(bare) else f"`{Path(page).parent.name}`"
        rows.append([name, f"{size:.1f}", *figures, f"{middle['processor, s']:.1f}"])
    print(markdown(["page", "MB", *(f"{name}, ms" for name in MOMENTS), "processor, s"], rows))
    print(f"\nMedians of {asked.tries}; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.")


if __name__ == "__main__":
    main()
