"""Words by which a search is tried."""

# What people type who look for a lesson, and where it is taught.
TYPED = {
    "ORF": "05",
    "RFF": "04",
    "orthogonal random features": "05",
    "linear attention": "10",
    "random Fourier features": "04",
    "sliding window": "15",
    "FAVOR+": "09",
    "Mercer": "02",
    "RoPE": "07",
    "Bochner": "03",
    "Mamba": "20",
    "RetNet": "20",
    "delta rule": "20",
    "Hadamard": "a6",
    "causal": "12",
    "quadratic attention": "10",
    "kernel trick": "01",
    "Nyström": "04",
    "long context": "12",
    "KV cache": "12",
    "MQAR": "20",
    "SORF": "a6",
    "softmax": "08",
    "transformer": "07",
    "rotary": "07",
    "random features": "04",
}
# What they type who look for another page.
ELSEWHERE = {
    "favor_attention": "performer_course/attention",
    "grading": "kit/pages/grading",
    "Moodle": "kit/pages/quizzes/",
    "PyTorch": "kit/pages/in_your_own_model",
    "glossary": "notebooks/glossary",
}
