"""Many machines: the tables of the shared database, the workers that drive runs, and what is asked of them.

`schema` has the tables and the rights, `moving` copies a project, `worker` drives legs, `overview` says who does what.
docs/history/019 says why.
"""
