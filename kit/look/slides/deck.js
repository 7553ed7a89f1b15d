// MathJax sets the formulas; then letters shrink on slides that are too full; then reveal.js starts.
const SMALLEST = 24, NARROW = 600;

// The notes are copied into the speaker's window, which has no MathJax: there a formula is MathML.
function speak() {
  document.querySelectorAll("aside.notes .math").forEach((formula) => {
    formula.innerHTML = MathJax.tex2mml(formula.textContent.slice(2, -2), { display: false });
  });
}

function overflows(slide) {
  if (slide.scrollHeight > slide.clientHeight || slide.scrollWidth > slide.clientWidth) return true;
  const { right, bottom } = slide.getBoundingClientRect();
  return [...slide.querySelectorAll("p, li, h2, mjx-container, table, pre")].some((part) => {
    const box = part.getBoundingClientRect();
    return box.right > right - 20 || box.bottom > bottom - 10;
  });
}

function fit(slide) {
  let size = parseFloat(getComputedStyle(slide).fontSize);
  while (size > SMALLEST && overflows(slide)) {
    size -= 1;
    slide.style.setProperty("--size", `${size}px`);
  }
}

async function begin() {
  const at = Number(location.hash.slice(2)) || 0;
  const column = innerWidth <= NARROW && !location.search.includes("receiver"); // not the speaker's window
  const steps = column ? document.querySelectorAll(".fragment") : [];
  steps.forEach((step) => step.classList.remove("fragment")); // each would take a screen of its own
  await document.fonts.ready;
  speak();
  document.querySelectorAll("section:not(.figure) > .slide").forEach(fit);
  document.documentElement.classList.remove("fitting");
  await Reveal.initialize({
    width: 1280, height: 720, margin: 0, minScale: 0.1, maxScale: 4, center: false, hash: true,
    slideNumber: "c", controls: false, transition: "none", backgroundTransition: "none",
    pdfMaxPagesPerSlide: 1, pdfSeparateFragments: false, plugins: [RevealNotes],
    scrollActivationWidth: NARROW, scrollLayout: "compact", scrollSnap: false, // one column on a phone
  });
  if (Reveal.isScrollView()) Reveal.getSlides()[at]?.scrollIntoView(); // reveal.js forgets the slide
  document.documentElement.dataset.ready = "";
}

window.MathJax = {
  tex: { inlineMath: [["\\(", "\\)"]], displayMath: [] },
  chtml: { matchFontHeight: false, scale: 1.1 },
  options: { ignoreHtmlClass: "notes" },
  startup: { pageReady: () => MathJax.startup.defaultPageReady().then(begin) },
};
