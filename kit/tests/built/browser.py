"""A browser that refuses every address but one of our own, and what axe-core finds in a page."""

from contextlib import contextmanager

from kit import npm
from kit.pdf import READY

PATIENCE = 120_000  # milliseconds for one thing that a page does
STANDARD = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
AXE = """async ([tags, patience]) => {
    const late = new Promise((_, no) => setTimeout(() => no('axe-core takes too long'), patience));
    const said = await Promise.race([late, axe.run({runOnly: {type: 'tag', values: tags}})]);
    return said.violations.map(
        found => found.id + ': ' + found.nodes.map(node => node.html.slice(0, 120)).join(' | '));
}"""


@contextmanager
def opened(browser, address: str, page: str, *, scheme="light", width=1280):
    """A page once its formulas are set, and a list that fills with what goes wrong on it."""
    view = {"width": width, "height": 900}
    context = browser.new_context(color_scheme=scheme, viewport=view)
    context.set_default_timeout(PATIENCE)
    faults, tab = [], context.new_page()

    def pass_on(route):
        if route.request.url.startswith(address):
            route.continue_()
        else:
            faults.append(f"asks {route.request.url}")
            route.abort()

    context.route("**/*", pass_on)  # of the tab, and of a worker that it starts
    tab.on("console", lambda said: said.type == "error" and faults.append(said.text))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("response", lambda got: got.status >= 400 and faults.append(f"{got.status} {got.url}"))
    tab.goto(address + page)
    tab.wait_for_function(READY)
    yield tab, faults
    context.close()


def barriers(tab) -> list[str]:
    """What axe-core finds against WCAG 2.2, level AA."""
    tab.add_script_tag(path=npm.package("axe-core") / "axe.min.js")
    return tab.evaluate(AXE, [STANDARD, PATIENCE])
