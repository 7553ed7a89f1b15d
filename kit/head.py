"""What the head of a page tells a search engine, and the words by which the search finds a page.

A lesson's box says what one can do afterwards, and the glossary lists the terms that a lesson
teaches, with their other names. `TYPED` adds words that the course itself does not use.
"""

import re
from html import escape

from tools.lesson import Lesson, find, read
from tools.setting import NOTEBOOKS, ROOT, address

WORD = re.compile(r"(?m)^- \*\*(.+?)\*\*: (.+) \[(\w\d)\]\(\w+\.ipynb\)$")
AFTERWARDS = re.compile(r"^Afterwards,? you (?:can |)")
LESSON = re.compile(r"notebooks/(\d\d|a\d)_\w+$")
# What people type who do not know the course yet: by a lesson's number, a page or a folder.
TYPED = {
    "index": "prerequisites, requirements, install, license, licence, cite, citation, bibtex",
    "notebooks/errata_list": "mistakes in papers",
    "notebooks/glossary": "cheat sheet, formula sheet, notation",
    "notebooks/references": "papers, bibliography",
    "notebooks/exercises/index": "homework, problem sheets",
    "notebooks/solutions/index": "exercise solutions, answers to exercises, homework solutions",
    "kit/pages/branches": "optional lessons, which chapters to skip",
    "kit/pages/decision_card": "which method to use, should i use a performer or flash attention",
    "kit/pages/how_we_know": "trust, tested, reproducible",
    "kit/pages/grading": "final exam, examination, marks, marking homework, autograder, "
    "grading, nbgrader, hide solutions, students see the answers",
    "kit/pages/in_the_browser": "colab, binder, online, without installing",
    "kit/pages/in_your_own_model": "pytorch, scaled_dot_product_attention, pip install, "
    "hugging face, huggingface, transformers library, replace attention, swap attention",
    "kit/pages/projects": "term project ideas, final project",
    "notebooks/projects/p4_a_protein_head": "amino acids, esm",
    "kit/pages/quizzes/": "quiz, multiple choice, test questions",
    "kit/pages/speed": "benchmark, speed up inference, compared with other libraries",
    "kit/pages/lectures/index": "slides, decks, lecture notes, teach a class",
    "kit/pages/twelve_weeks": "syllabus, curriculum, schedule",
    "03": "fourier transform of the rbf kernel",
    "02": "psd, is my gram matrix a kernel, gaussian kernel, rbf kernel, mercer",
    "05": "variance reduction",
    "a3": "how many random features, d log d",
    "06": "quadratic attention, quadratic complexity, divide by sqrt d, scaling, self-attention, "
    "attention temperature, nadaraya watson, kernel regression",
    "07": "layer normalization, positional embeddings, attention mask, causal mask, transformer",
    "08": "random feature attention",
    "09": "random feature attention, lemma of choromanski, favor+, proof, unbiased",
    "10": "O(n), variable length batch, quadratic attention, flash attention, flashattention, "
    "low rank, order of matrix multiplication",
    "11": "numerical stability, overflow, underflow, logsumexp trick, fp16, half precision, nan",
    "12": "chunkwise parallel form, recurrent neural network, rnn, linear transformer, "
    "causal mask, memory",
    "14": "longformer, bigbird, window attention, sliding window, local attention, low rank, "
    "streamingllm",
    "15": "trained features, learned features, nystrom attention, nystromformer",
    "16": "train a transformer, training, loss stuck, does not learn, distillation, "
    "backward pass, gradient",
    "17": "antibody, amino acids, protein language model, fine-tuning, linearise, linearize",
    "18": "whisper, speech recognition, voice, audio",
    "19": "distributed, parallel, many gpus, ring attention, multi node",
    "20": "retnet, retention, gated linear attention, state space model, ssm, fast weights, memory",
    "22": "needle in a haystack, long context, lora, swap attention, llm, "
    "convert a language model, hybrid attention, pass key, passkey, gguf, smollm",
    "23": "decision card, use a performer",
    "a4": "hopfield network, backward pass, gradient, automatic differentiation",
    "a5": "gpu, cupy, cuda",
    "a6": "quasi monte carlo, low discrepancy",
    "a8": "fast multipole method, barnes hut, n-body, nbody",
    "a7": "svm, rkhs, proof of mercer",
}
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def plain(text: str) -> str:
    """One line without the marks of Markdown and of TeX."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    text = re.sub(r"\\(\w+)", r"\1", text.replace(r"^\top ", "ᵀ"))
    return re.sub(r"[*`$]", "", text)


def first_words(readme: str = "") -> tuple[str, str]:
    """The title of the course and the paragraph after it, as README has them."""
    said = readme or (ROOT / "README.md").read_text(encoding="utf-8")
    return tuple(map(plain, re.search(r"(?s)\*\*(.+?)\.\*\*\s+(.+?)\n\n", said).groups()))


def description(lesson: Lesson | None = None) -> str:
    """The first sentence on what one can do after a lesson; for other pages, README's first."""
    for part in lesson.box if lesson else ():
        if AFTERWARDS.match(part):
            said = SENTENCE.split(AFTERWARDS.sub("", plain(part)))[0]
            return said[0].upper() + said[1:]
    return SENTENCE.split(first_words()[1])[0]


def terms(glossary: str = "") -> dict[str, list[str]]:
    """The words that each lesson teaches, and other names for them, which the glossary has in
    italics. A theorem is found by whose it is."""
    glossary = glossary or (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for word, meaning, lesson in WORD.findall(glossary):
        said = re.sub(r"\$[^$]*\$", "", meaning)
        names = [word, *re.findall(r"(?<!\*)\*([^*]{2,})\*(?!\*)", said)]
        names += [name.partition("'s ")[0] for name in names if "'s " in name]
        found.setdefault(lesson, []).extend(names)
    return found


def lesson_of(docname: str) -> Lesson | None:
    found = LESSON.match(docname)
    return read(find(found[1])) if found else None


def words(docname: str) -> list[str]:
    """The keywords of a page: what people type, and for a lesson its subject and its terms."""
    lesson = lesson_of(docname)
    own = [lesson.subject, *terms().get(lesson.number, [])] if lesson else []
    place = lesson.number if lesson else docname
    typed = [said for page, said in TYPED.items() if place.startswith(page)]
    return own + [word for said in typed for word in said.split(", ")]


def tags(docname: str) -> str:
    """The meta tags of a page."""
    about = description(lesson_of(docname))
    names = {"description": about, "keywords": ", ".join(words(docname))}
    made = (f'<meta name="{name}" content="{escape(x)}" />\n' for name, x in names.items() if x)
    return "\n" + "".join(made)


def in_head(app, docname, template, context, doctree):
    """Sphinx's event for a page: its tags, without the viewport, which the theme sets itself."""
    file = "README.md" if docname == "index" else f"{docname}{context.get('page_source_suffix')}"
    if address("REPOSITORY") and not (ROOT / file).is_file():  # made here, so nobody can edit it
        context["page_source_suffix"] = ""
    kept = re.sub(r'<meta name="viewport"[^>]*/>', "", context.get("metatags", ""))
    context["metatags"] = kept + tags(docname)
