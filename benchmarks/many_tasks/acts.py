acts = None
