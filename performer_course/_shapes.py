"""Annotations for the arrays of attention: L queries, S keys of width d, values of size e.

`Own` in a name means as many rows as queries: keys and values of the same tokens.
"""

from typing import Any

from jaxtyping import Bool, Float

Array = Any  # of any library

Query = Float[Array, "... L d"]
Key, OwnKey = Float[Array, "... S d"], Float[Array, "... L d"]
Value, OwnValue = Float[Array, "... S e"], Float[Array, "... L e"]
Mask, OwnMask = Bool[Array, "... S"] | None, Bool[Array, "... L"] | None
Directions = Float[Array, "... m d"]
Rows = Float[Array, "... L e"]
