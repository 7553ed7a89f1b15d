"""What lessons need besides the mathematics.

data         a text, attention of three kinds (independent, aligned, learned), and speech
figures      one style; show(fig, alt=...) puts a figure and its alt text on the page
drawings     drawings of attention, a transformer block and a state, for lessons and slides
machine      sizes(full, small, ...) of an experiment, small where NumPy has no BLAS (a web browser)
training     Adam on JAX, as in lessons 16 and 21 (the extra `training`)
cost_model   an array that records what a GPU would launch, move and wait for (appendix a5)

Nothing here is needed to use the package.
"""
