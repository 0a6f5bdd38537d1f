def set_keyword(*a): return None
