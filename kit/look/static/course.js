// The accessible name of the search button has to contain its visible text.
document
  .querySelectorAll("button.search-button-field[aria-label]")
  .forEach((button) => button.removeAttribute("aria-label"));
// The same for folded code. The arrows in the side bar have no name at all.
document
  .querySelectorAll("details.hide > summary[aria-label]")
  .forEach((summary) => summary.removeAttribute("aria-label"));
document.querySelectorAll("nav li > details > summary").forEach((summary) => {
  const page = summary.closest("li").querySelector("a").textContent.trim();
  summary.setAttribute("aria-label", `Pages below ${page}`);
});
// Excerpts in the search come from the article, without the line of links and without TeX.
if (typeof Search !== "undefined") {
  const words = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const article = new DOMParser().parseFromString(page, "text/html").querySelector("article");
    article?.querySelectorAll(".beside").forEach((line) => line.remove());
    article?.querySelectorAll(".math").forEach((formula) => {
      const tex = formula.textContent.trim().slice(2, -2);
      formula.textContent = /[\\{}^_]/.test(tex) ? "…" : tex;
    });
    return words(article ? `<div role="main">${article.innerHTML}</div>` : page, anchor);
  };
  // A page need not have every word that was typed: a rare word counts more than a frequent one.
  const strict = Search.performTermsSearch;
  Search.performTermsSearch = (asked, without) => {
    const sums = new Map(), pages = Search._index.docnames.length;
    for (const word of asked) {
      const found = strict(new Set([word]), without);
      for (const result of found) {
        result[4] *= Math.log(1 + pages / found.length) / (Scorer.last.test(result[0]) ? 3 : 1);
        const known = sums.get(result[0]);
        known ? (known[4] += result[4]) : sums.set(result[0], result);
      }
    }
    return [...sums.values()].sort((one, other) => other[4] - one[4]).slice(0, 15);
  };
  // Drop words like "why". A keyword that contains all the others, in any order, is a hit.
  const ask = Search.query, split = (text) => splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word));
  Search.query = (said) => {
    const query = split(said).join(" ") || said, stemmer = new Stemmer(), keywords = {};
    const stem = (word) => stemmer.stemWord(word), asked = split(query).map(stem);
    for (const [keyword, pages] of Object.entries(Search._index.indexentries)) {
      const own = split(keyword), stems = own.map(stem);
      const more = own.filter((word) => !asked.includes(stem(word)));
      const key = asked.every((word) => stems.includes(word)) ? [query, ...more].join(" ") : keyword;
      (keywords[key] ??= []).push(...pages);
    }
    Search._index.indexentries = keywords;
    ask(query);
  };
}
// A formula that is wider than the page scrolls, so the Tab key must stop at it.
const reach = () =>
  document.querySelectorAll("mjx-container").forEach((formula) => {
    const line = formula.closest("p, td, dd, li, div"), inline = !formula.hasAttribute("display");
    const wide = formula.firstElementChild.getBoundingClientRect().width > line.clientWidth;
    formula.classList.toggle("wide", wide && inline);
    const more = formula.scrollWidth > formula.clientWidth + 1; // of an inline one also because of its hidden MathML
    if (more && (wide || !inline)) formula.tabIndex = 0;
    else formula.removeAttribute("tabindex");
  });
window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  reach();
  window.addEventListener("resize", reach);
});
