"""Lesson 00, how a check answers: right answers in other forms, and what is no mistake."""

RIGHT = {"variance_of_mean": [lambda variance, m: sum([variance] * m) / m**2]}
WRONG = {
    "variance_of_mean": [
        (
            lambda variance, m: variance * (1 + 1e-6) / m,
            "found 0.25000025 for variance = 0.25, m = 1, expected 0.25.",
        )
    ]
}
