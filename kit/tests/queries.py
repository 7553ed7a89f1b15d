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
    "RoPE": "07",
    "Mercer": "02",
    "MQAR": "20",
    "KV cache": "12",
    "SORF": "a6",
}
