"""The dashboard: one page that shows agents deciding together, from a recorded run or a live network.

`sources` and `live` are the two feeds, `what_if` computes, `app` serves, `static/` is the page. It only reads.
"""

PORT = 8300
"""Where the page is, unless another port is asked for."""
