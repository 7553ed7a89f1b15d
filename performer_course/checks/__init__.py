"""What a right answer to an exercise satisfies, and the likely slip when it does not.

One function an exercise, named after it, in the file of its lesson. Each calls the answer on
inputs drawn from a fixed seed and compares what comes back with the property it must have. It
returns nothing when the property holds, prints one line to say so, and raises `Hint` when it
does not.
"""
# ruff: noqa: F401

from ._judge import Hint
from .a1 import counterexample, repaired_attention
from .lesson_00 import variance_of_mean
from .lesson_01 import distance_to_mean, highest_degree, quadratic_features
from .lesson_02 import is_kernel_matrix, softmax_from_gaussian, taylor_features
from .lesson_03 import estimate_kernel, gaussian_frequencies, spectral_density
from .lesson_04 import directions_needed, product_directions, without_leftover
from .lesson_05 import loses_at, one_more_row, orthogonal_directions
from .lesson_06 import choose_rows, stage_error, walsh_hadamard
from .lesson_07 import cross_attention, decoder_mask, rotary
from .lesson_08 import nearer_keys, smoother_as_attention, trigonometric_attention
from .lesson_09 import attention_features, features_needed, log_estimates
from .lesson_10 import masked_linear_attention
from .lesson_11 import directions_for_attention, log_denominator
from .lesson_12 import causal_by_chunks, merge_states, shrunk_recall
from .lesson_13 import less_biased, performer_layer
from .lesson_14 import centred_estimates
from .lesson_15 import banded_attention, near_and_rest, shift_moments
from .lesson_16 import choose_map, gradient_by_keys, leaks
from .lesson_17 import can_be_swapped, read_weights, window_null
from .lesson_18 import bounded, decoding_roof, smallest_chunk
