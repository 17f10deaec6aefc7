"""What the pages of one cluster show, read from the stored rows. Each context serves the page and the push alike.

A context takes the cluster and the time now, and knows no request: what it returns is the same for everybody who may
view the cluster. ``sampled_at`` is when the data shown was taken, or None.
"""
