"""How approved runs get onto a branch: work commits, merging without a checkout, judging what merges, the queue.

`repository` is git alone, `land` the order of things with a judge that is given to it, `sealed_judge` the one judge of
the product, `work` what an approved run is, `queue` which of them have not landed. docs/history/018 says why.
"""
