"""Results as words, JSON and maps: what a person sees, what `--json` prints, and the page of `changes --html`.

Not here: deciding anything (`gate`, `change`), printing (`cli`).
"""
