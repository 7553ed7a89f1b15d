"""What a right answer to an exercise satisfies, and the likely mistake when it does not.

One function an exercise, named after it, in the file of its lesson. Each calls the answer on
inputs drawn from a fixed seed and compares what comes back with the property it must have. It
returns nothing when the property holds, prints one line to say so, and raises `Hint` when it
does not.
"""
# ruff: noqa: F401

from ._judge import Hint
from .a1 import counterexample, false_limit, repaired_attention
from .a3 import bias_and_noise, draws_to_average, less_biased
from .a5 import decoding_roof, smallest_chunk
from .a6 import stage_error, walsh_hadamard
from .a8 import cheapest_separation, shift_moments
from .lesson_00 import variance_of_mean
from .lesson_01 import distance_to_mean, highest_degree, quadratic_features
from .lesson_02 import counterexample_points, is_kernel_matrix, squared_distance_to_span
from .lesson_03 import in_cycles, three_points, which_kernel
from .lesson_04 import cancelling_phases, features_enough, product_directions
from .lesson_05 import loses_at, orthogonal_directions, worth
from .lesson_06 import best_blend, score_for, without_lengths
from .lesson_07 import after_two, decoder_mask, is_relative
from .lesson_08 import nearer_keys, out_of_range, what_is_wrong
from .lesson_09 import best_mix, features_needed
from .lesson_10 import features_at_least, masked_linear_attention, padding_invariant
from .lesson_11 import hidden_eps, log_estimates, predicted_error
from .lesson_12 import first_leak, gradient_by_values, most_pairs
from .lesson_13 import remembered, second_half
from .lesson_14 import narrowest_window, near_and_rest
from .lesson_15 import centred_estimates, same_weights, worse_when_centred
from .lesson_16 import gradient_by_keys, leaks
from .lesson_17 import can_be_replaced, window_baseline
from .lesson_18 import causal_near_and_one, near_and_one, weight_outside
from .lesson_19 import backwards, prefixes
from .lesson_20 import blocks_of, gated_weights
from .lesson_21 import decay_recall, strength_for
from .lesson_22 import best_hybrid, hybrid_bytes, paired_difference
from .lesson_23 import retrieving, tokens_from
