// The search button reads "Search" and the keys that open it; its name must say as much.
document
  .querySelectorAll("button.search-button-field[aria-label]")
  .forEach((button) => button.removeAttribute("aria-label"));
// The same for folded code; and what unfolds a part of the side bar has no name at all.
document
  .querySelectorAll("details.hide > summary[aria-label]")
  .forEach((summary) => summary.removeAttribute("aria-label"));
document.querySelectorAll("nav li > details > summary").forEach((summary) => {
  const page = summary.closest("li").querySelector("a").textContent.trim();
  summary.setAttribute("aria-label", `Pages below ${page}`);
});
