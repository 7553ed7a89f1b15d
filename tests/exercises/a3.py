"""Appendix a3, more on the Performer: right answers in any form, and what no mistake is."""

RIGHT, WRONG = {}, {}


def by_trying(bias_squared, variance, aim):
    tried = (R for R in range(1, 1000) if bias_squared + variance / R <= aim)
    return next(tried, 0)


RIGHT["draws_to_average"] = [by_trying]
