// How the search orders pages. Sphinx gives all pages that have the same word the same score, and
// then goes by their titles. Here a page comes first if one of its headings or keywords has many of
// the words that were typed, and pages about the course, rather than of it, come last.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  last: /^(CHANGELOG|CONTRIBUTING|notebooks\/(coverage|errata_list))$|\/(exercises|solutions)\/(?!index)/,
  query: null,
  named: new Map(), // page -> the most words of the query in one of its headings or keywords

  score: ([page, , , , score]) => {
    const typed = new URLSearchParams(location.search).get("q") || "";
    if (typed !== Scorer.query) Scorer.count(typed);
    return (score + 10 * (Scorer.named.get(page) || 0)) / (Scorer.last.test(page) ? 3 : 1);
  },

  count: (typed) => {
    const stemmer = new Stemmer();
    const stems = (text) =>
      text.toLowerCase().match(/[\p{L}\p{N}+]+/gu)?.map((word) => stemmer.stemWord(word)) || [];
    const asked = new Set(stems(typed).filter((word) => !stopwords.has(word)));
    const {alltitles, indexentries, docnames} = Search._index, keywords = new Map();
    const among = (text) => new Set(stems(text).filter((word) => asked.has(word)));
    const named = (page, count) => Scorer.named.set(page, Math.max(count, Scorer.named.get(page) || 0));
    Scorer.query = typed;
    Scorer.named = new Map();
    for (const [title, places] of Object.entries(alltitles)) {
      const found = among(title);
      for (const [at] of places) named(docnames[at], found.size);
    }
    for (const [keyword, places] of Object.entries(indexentries)) {
      const found = among(keyword);
      for (const [at] of places) {
        const whole = new Set([...found, ...(keywords.get(at) || [])]);
        keywords.set(at, whole);
        named(docnames[at], whole.size);
      }
    }
  },
};
