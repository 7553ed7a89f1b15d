"""Words by which a search is tried."""

# What people type who look for a lesson, and where it is taught.
WORDS = {
    "01": "kernel trick",
    "02": "Mercer",
    "03": "Bochner",
    "04": "RFF, random Fourier features, Nyström, random features",
    "05": "ORF, orthogonal random features, variance reduction",
    "06": "Why is attention quadratic?, Nadaraya–Watson, temperature",
    "07": "RoPE, transformer, rotary",
    "08": "softmax",
    "09": "FAVOR+, random feature attention",
    "10": "linear attention, quadratic attention, flash attention, low rank",
    "12": "causal, long context, KV cache",
    "14": "sliding window, window attention, attention sink, StreamingLLM",
    "15": "trained features",
    "17": "antibody",
    "20": "Mamba, RetNet, delta rule",
    "21": "MQAR",
    "22": "language model, convert a language model, hybrid attention, pass key, LoLCATs",
    "23": "decision card",
    "a6": "Hadamard, SORF",
}
TYPED = {word: lesson for lesson, words in WORDS.items() for word in words.split(", ")}
# What they type who look for another page.
ELSEWHERE = {
    "favor_attention": "performer_course/attention",
    "grading": "kit/pages/grading",
    "Moodle": "kit/pages/quizzes/",
    "PyTorch": "kit/pages/in_your_own_model",
    "glossary": "notebooks/glossary",
    "prerequisites": "index",
    "license": "index",
    "exercise solutions": "notebooks/solutions/index",
    "exam": "kit/pages/grading",
}
